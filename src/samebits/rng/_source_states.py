"""Seeding, reading and restoring one RNG source, even before its library is imported.

NumPy 2.4 imports `numpy.random` when it is first used; OpenCV, CuPy or a backend of torch may be imported
long after a seed was set. For each such source `Waiting` lists what has happened to it, as if it were there:
it was seeded, a state was put back, or a block began after which its state is restored. The list is carried
out in order when the library is imported.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.frames import pass_on
from samebits._runtime.imports import PostImport
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng.sources.source import UNSAVED_SLUG

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from samebits.rng.sources.source import RngSource


class SourceState(NamedTuple):
    """The state of one RNG source at one moment.

    Args:
        source: its name.
        version: the library and its version.
        data: the state, without pickle.
    """

    source: str
    version: str
    data: bytes


def seed_source(source: RngSource, seed: int) -> None:
    """Seed a source that is available.

    Raises:
        SamebitsError: it refused; `rng-seed`.
    """
    try:
        source.seed(seed)
    except Exception as error:
        pass_on(error)
        message = f"{source.name} ({source.version()}) does not take the seed {seed}: {_one_line(error)}"
        raise SamebitsError(message, slug="rng-seed") from error


def read_state(source: RngSource) -> SourceState | None:
    """Return the state; None, with a warning, when the source has none that can be read.

    Raises:
        SamebitsError: reading failed; `rng-state`.
    """
    try:
        return SourceState(source.name, source.version(), bytes(source.get_state()))
    except Exception as error:
        pass_on(error)
        if isinstance(error, SamebitsError) and error.slug == UNSAVED_SLUG:
            warnings.warn(f"samebits: {error}", SamebitsWarning, stacklevel=2)
            return None
        message = f"the state of {source.name} ({source.version()}) cannot be read: {_one_line(error)}"
        raise SamebitsError(message, slug="rng-state") from error


def can_be_saved(source: RngSource) -> bool:
    """Tell whether the source has a state that can be read."""
    try:
        source.get_state()
    except SamebitsError as error:
        return error.slug != UNSAVED_SLUG
    return True


def write_state(source: RngSource, state: SourceState) -> str:
    """Set the state.

    Returns:
        An error message; empty on success.
    """
    try:
        source.set_state(state.data)
    except Exception as error:  # noqa: BLE001 - a library may raise anything for a foreign state
        pass_on(error)
        return (
            f"the state of {source.name}, saved with {state.version}, does not fit {source.version()} here: "
            f"{_one_line(error)}; restore it with the version that saved it"
        )
    return ""


def raise_failures(failures: list[str]) -> None:
    """Raise one error for all failures; empty texts stand for success.

    Raises:
        SamebitsError: something failed; `rng-state`.
    """
    text = "; ".join(failure for failure in failures if failure)
    if text:
        raise SamebitsError(text, slug="rng-state")


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


_KEY = b'{"not imported": '


class Pending(NamedTuple):
    """A seed or a state that a source gets when its library is imported.

    Args:
        seed: the seed; None when it is a state.
        state: the state; None when it is a seed.
        only_if_saved: leave a source alone that cannot be put back afterwards; for `reseeded`.
    """

    seed: int | None = None
    state: SourceState | None = None
    only_if_saved: bool = False

    def to_bytes(self) -> bytes:
        """Encode it as the state of a source whose library is not imported yet."""
        state = None if self.state is None else [self.state.version, self.state.data.hex()]
        return _KEY + json.dumps({"seed": self.seed, "state": state}).encode() + b"}"

    @classmethod
    def from_bytes(cls, source: str, data: bytes) -> Pending | None:
        """Decode the result of `to_bytes`; None when it is the state of a source that was there.

        Raises:
            ValueError: it is neither.
        """
        if not data.startswith(_KEY):
            return None
        fields = json.loads(data)["not imported"]
        seed, state = fields["seed"], fields["state"]
        if state is not None:
            return cls(state=SourceState(source, str(state[0]), bytes.fromhex(state[1])))
        if not isinstance(seed, int):
            raise ValueError(f"{seed!r} where a seed was expected")  # noqa: TRY004 - the text is wrong
        return cls(seed=seed)

    def apply(self, source: RngSource) -> str:
        """Apply it to a source that is available, and return an error message, empty on success.

        Raises:
            SamebitsError: the source refused the seed; `rng-seed`.
        """
        if self.seed is not None:
            seed_source(source, self.seed)
        return "" if self.state is None else write_state(source, self.state)


class Block:
    """A part of the program at whose end the state of every source is restored."""

    def __init__(self) -> None:
        self._saved: list[tuple[RngSource, Pending]] = []

    def save(self, source: RngSource, before: list[Pending]) -> bool:
        """Save the state of a source whose library was imported in the block.

        Returns:
            True when it can be put back; otherwise there was a warning.
        """
        if before and not can_be_saved(source):
            self._saved += [(source, pending) for pending in before[-1:]]
            return True
        state = read_state(source)
        if state is not None:
            self._saved.append((source, Pending(state=state)))
        return state is not None

    def put_back(self) -> list[str]:
        """Put back the sources that were imported in the block, and return error messages."""
        return [pending.apply(source) for source, pending in self._saved]


class Waiting:
    """The sources whose libraries are not imported yet, with the seeds and states for them."""

    def __init__(self) -> None:
        self._steps: dict[str, list[Pending | Block]] = {}
        self._imports = PostImport()
        self._watched: set[str] = set()

    def seed(self, source: RngSource, seed: int, *, only_if_saved: bool = False) -> None:
        """Seed a source whose library is not imported yet."""
        self._add(source, Pending(seed, only_if_saved=only_if_saved))

    def restore(self, source: RngSource, state: SourceState) -> None:
        """Restore a source whose library is not imported yet."""
        self._add(source, Pending.from_bytes(source.name, state.data) or Pending(state=state))

    def state(self, source: RngSource) -> SourceState | None:
        """Return the state or seed that waits for a source; None when there is none."""
        pending = _pending(self._steps.get(source.name, []))
        if not pending:
            return None
        return pending[-1].state or SourceState(
            source.name, f"{source.name}, not imported", pending[-1].to_bytes()
        )

    def begin(self, sources: Iterable[RngSource]) -> Block:
        """Begin a block; `end` ends it."""
        block = Block()
        for source in sources:
            if is_to_come(source):
                self._steps_of(source).append(block)
        return block

    def end(self, block: Block) -> list[str]:
        """End a block: forget its effects on sources that are still not there, and put back the others.

        Returns:
            Error messages of those that could not be put back.
        """
        for name, steps in list(self._steps.items()):
            if block in steps:
                del steps[steps.index(block) :]
            if not steps:
                del self._steps[name]
        self._stop_if_empty()
        return block.put_back()

    def forget(self) -> None:
        """Forget all waiting seeds and states."""
        self._steps.clear()
        self._stop_if_empty()

    def _add(self, source: RngSource, pending: Pending) -> None:
        steps = self._steps_of(source)
        while steps and not isinstance(steps[-1], Block):
            del steps[-1]  # the last seed counts
        steps.append(pending)

    def _steps_of(self, source: RngSource) -> list[Pending | Block]:
        if source.name not in self._watched:
            self._watched.add(source.name)
            self._imports.install()
            self._imports.on_import(source.module, functools.partial(self._on_import, source))
        return self._steps.setdefault(source.name, [])

    def _stop_if_empty(self) -> None:
        if not self._steps:
            self._imports.remove()
            self._watched.clear()

    def _on_import(self, source: RngSource, _module: ModuleType) -> None:
        """Apply the seeds and states that waited for the import of a library to its source.

        Raises:
            SamebitsError: it refused the seed or the state; `rng-seed`, `rng-state`. The import raises it.
        """
        steps = self._steps.pop(source.name, [])
        self._watched.discard(source.name)
        self._stop_if_empty()
        saved = True
        for index, step in enumerate(steps if source.available() else ()):
            if isinstance(step, Block):
                saved = step.save(source, _pending(steps[:index]))
            elif saved or not step.only_if_saved:
                raise_failures([step.apply(source)])


def is_to_come(source: RngSource) -> bool:
    """Tell whether the generator will exist once the import of its module is complete."""
    module: Any = sys.modules.get(source.module)
    begun = getattr(getattr(module, "__spec__", None), "_initializing", False)
    return bool(source.module) and (module is None or begun) and not source.available()


def _pending(steps: list[Pending | Block]) -> list[Pending]:
    return [step for step in steps if isinstance(step, Pending)]
