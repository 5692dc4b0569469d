"""Watch the seeds that a script sets itself, and on request derive them from the run seed."""

from __future__ import annotations

import dataclasses
import functools
import random
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.frames import LIBRARY, USER, FrameRanks, Site, calling_frame, site_of
from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches
from samebits.rng.active import acting
from samebits.rng.seeds import derive
from samebits.rng.sources import BUILT_IN

if TYPE_CHECKING:
    from types import FrameType

    from samebits.rng.active import Active
    from samebits.rng.sources.source import BuiltInSource, Position, StateFunction

_MOST = 100
# Modules of samebits whose functions wrap those that seed.
_WRAPPERS = (
    __name__,
    "samebits.rng.unseeded_generators",
    "samebits.interventions",
    "samebits.determinism.setter_wrappers",
    "samebits._runtime",
    "samebits.recording.probes",
)


class ScriptSeed(NamedTuple):
    """A call by which the script, or a library on its behalf, seeded a global generator.

    Args:
        function: such as `torch.manual_seed`.
        given: the seed, as text.
        site: the line of the user's code; None when there is none on the stack.
        by: the line of the installed library that chose to seed; None when the script did.
    """

    function: str
    given: str
    site: Site | None
    by: Site | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        sites = {"site": self.site, "by": self.by}
        fields = {name: None if site is None else dataclasses.asdict(site) for name, site in sites.items()}
        return {**self._asdict(), **fields}


class _Generator:
    """One global generator: the seeds that it was given and that are still in force.

    A seed is no longer in force once the state from before the seeding was put back, as
    `torch.random.fork_rng` and datasets of torchvision do.

    Args:
        source: the source of the generator.
    """

    def __init__(self, source: BuiltInSource) -> None:
        # A position is compared when a state is put back. Reading that of a device would wait for it.
        can_go_back = any(not function.seeds for function in source.functions)
        self._read = source.position_reader() if can_go_back else dict
        self._name = source.name
        self._calls: list[tuple[Position | None, ScriptSeed]] = []

    def position(self) -> Position | None:
        """Return its position; None when that cannot be read."""
        return self._read().get(self._name)

    @property
    def calls(self) -> list[ScriptSeed]:
        """The calls that seeded it, in order."""
        return [call for _, call in self._calls]

    def seeded(self, before: Position | None, call: ScriptSeed) -> None:
        """Note that it is about to be seeded at position `before`."""
        if len(self._calls) < _MOST and call not in self.calls:
            self._calls.append((before, call))

    def restored(self) -> None:
        """Forget seedings that are undone, because its state from before them was set."""
        now = self.position()
        for index, (before, _) in enumerate(self._calls):
            if before is not None and before == now:
                del self._calls[index:]
                return


class ScriptSeeds:
    """Watches the functions that seed global generators with an explicit seed.

    After a script calls `torch.manual_seed(42)`, the run seed has no effect on that generator. With
    `Control.reseed`, 42 is replaced by a seed derived from the run seed and 42: equal seeds stay equal, and
    other run seeds give other numbers.

    Seedings by Python, torch and samebits for their own purposes are not a choice of the script: Python's
    `random` in a forked child, the workers of a DataLoader.

    Args:
        active: the activation; its seed is the run seed.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._patches = Patches()
        self._imports = PostImport()
        self._generators = {source.name: _Generator(source) for source in BUILT_IN if source.functions}

    @property
    def seen(self) -> list[ScriptSeed]:
        """The seeds that are in force, or were until the script set others, each once."""
        return [call for generator in self._generators.values() for call in generator.calls]

    @functools.cached_property
    def _ranks(self) -> FrameRanks:
        return FrameRanks()  # takes half a millisecond, and many scripts never need it

    def install(self) -> None:
        """Begin, with libraries that are imported later as well."""
        self._imports.install()
        for source in BUILT_IN:
            if source.functions and source.module == "torch":
                self._imports.on_torch(functools.partial(self._watch_source, source))
            elif source.functions and source.module:
                self._imports.on_import(source.module, functools.partial(self._watch_source, source))
            elif source.functions:
                self._watch_source(source, random)

    def remove(self) -> None:
        """Stop."""
        self._imports.remove()
        self._patches.restore()

    def _watch_source(self, source: BuiltInSource, module: Any) -> None:
        for function in source.functions:
            for owner in function.owners_in(module):
                if function.seeds:
                    self._watch(owner, function, source.name)
                else:
                    self._watch_restoring(owner, function.name, source.name)

    def _watch(self, owner: Any, function: StateFunction, family: str) -> None:
        original, text = getattr(owner, function.name), function.text

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            if args and args[0] is not None:
                args = (self._seed_for(args[0], text, family, calling_frame()), *args[1:])
            elif kwargs.get("seed") is not None:
                kwargs["seed"] = self._seed_for(kwargs["seed"], text, family, calling_frame())
            return original(*args, **kwargs)

        self._patches.set(owner, function.name, seed)

    def _watch_restoring(self, owner: Any, name: str, family: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def restore(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._generators[family].restored()
            return result

        self._patches.set(owner, name, restore)

    def _seed_for(self, given: Any, text: str, family: str, frame: FrameType) -> Any:
        """Return the seed that the call uses: a derived one with `Control.reseed`, else the given one."""
        caller = _past_wrappers(frame)
        if caller is None or _is_own(caller):
            return given
        site, by = self._who(caller)
        if site is not None or by is not None:
            generator = self._generators[family]
            generator.seeded(generator.position(), ScriptSeed(text, repr(given)[:40], site, by))
        active = acting(self._active)
        if not active.control.reseed or active.seed is None:
            return given
        return derive(active.seed, "script", repr(given)) & (2**32 - 1)

    def _who(self, frame: FrameType | None) -> tuple[Site | None, Site | None]:
        """Return the lines of the user's code and of the library that seed; neither when Python seeds."""
        library: Site | None = None
        nearest = frame
        while frame is not None:
            rank = self._ranks.of(frame)
            if rank == USER:
                # The script itself chose to call a function that only seeds (`transformers.set_seed`).
                chosen = nearest is not None and frame is nearest.f_back
                return site_of(frame.f_code, frame.f_lineno), None if chosen else library
            if rank == LIBRARY and library is None and not _is_standard(frame):
                library = site_of(frame.f_code, frame.f_lineno)
            frame = frame.f_back
        return None, library


def _past_wrappers(frame: FrameType | None) -> FrameType | None:
    """Return the frame, or the first one below it that is not one of samebits' wrappers."""
    while frame is not None and _module(frame).startswith(_WRAPPERS):
        frame = frame.f_back
    return frame


def _is_own(frame: FrameType) -> bool:
    """Tell whether torch or samebits seeds for its own purpose."""
    return _module(frame).partition(".")[0] in ("samebits", "torch")


def _is_standard(frame: FrameType) -> bool:
    return _module(frame).partition(".")[0] in sys.stdlib_module_names


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
