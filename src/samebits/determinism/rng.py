"""Seeding, saving and restoring all RNG sources of this process."""

from __future__ import annotations

import functools
import operator
import os
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.determinism.live import LiveStates, registered_sources
from samebits.determinism.process import PROCESS, required
from samebits.determinism.rng_sources import BUILT_IN
from samebits.determinism.rng_sources.plugins import plugins
from samebits.determinism.rng_sources.source import UNSAVED_SLUG, RngSource, loaded
from samebits.determinism.seeds import check_keys, check_seed, derive
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from samebits.hooks.imports import PostImport

__all__ = [
    "RngSource",
    "SourceState",
    "current_rank",
    "isolated",
    "rank_seed",
    "reseeded",
    "restore_states",
    "save_states",
    "seed_all",
    "seed_on_import",
    "seed_sources",
    "sources",
]


class SourceState(NamedTuple):
    """The state of one RNG source at one moment.

    Args:
        source: its name.
        version: the library that it is of.
        data: the state, without pickle.
    """

    source: str
    version: str
    data: bytes


def sources() -> tuple[RngSource, ...]:
    """All sources that are known: those of samebits, then those of other packages.

    A package brings one by an entry point of the group `samebits.rng_sources`; see docs/rng.md.
    """
    return BUILT_IN + plugins()


def seed_all(seed: int, *, rank: int | None = None) -> int:
    """Seed every source that is available, and make that the run seed.

    Args:
        seed: from 0 to 2**64 - 1. One below 2**32 gives what `random.seed`, `numpy.random.seed` and
            `torch.manual_seed` give with it.
        rank: the rank of this process, for a seed of its own; None gives every process the same.

    Returns:
        The seed of this process.

    Raises:
        SamebitsError: that is no seed, `seed`, or no rank, `rank`; a source refused, `rng-seed`.
    """
    shared = check_seed(seed)
    seed = shared if rank is None else rank_seed(shared, rank)
    seed_sources(seed)
    PROCESS.use_seed(seed, shared)
    return seed


def seed_sources(seed: int, among: Iterable[RngSource] | None = None) -> None:
    """Seed sources, without making that the run seed.

    Args:
        seed: from 0 to 2**64 - 1.
        among: which ones; by default all. Those that are not available are passed over.

    Raises:
        SamebitsError: a source refused; `rng-seed`.
    """
    for source in sources() if among is None else among:
        if not source.available():
            continue
        try:
            source.seed(seed)
        except Exception as error:
            message = f"{source.name} ({source.version()}) does not take the seed {seed}: {_one_line(error)}"
            raise SamebitsError(message, slug="rng-seed") from error


def seed_on_import(imports: PostImport, seed: int, among: Iterable[RngSource] | None = None) -> None:
    """Have each source whose library is not imported yet be seeded right after its import.

    A seed that the script sets later wins.

    Args:
        imports: installed by the caller.
        seed: from 0 to 2**64 - 1.
        among: which ones; by default all.
    """
    for source in sources() if among is None else among:
        if source.module and not source.available():
            imports.on_import(source.module, functools.partial(_seed_one, source, seed))


def _seed_one(source: RngSource, seed: int, _module: ModuleType) -> None:
    seed_sources(seed, [source])


def rank_seed(seed: int, rank: int) -> int:
    """The seed of a process of a distributed run: rank 0 keeps the seed, the others' follow from it.

    So a run of one process is the same with and without `rank`.

    Raises:
        SamebitsError: that is no rank; `rank`.
    """
    try:
        number = operator.index(rank)
    except TypeError:
        number = -1
    if number < 0 or isinstance(rank, bool):
        raise SamebitsError(f"the rank is {rank!r}; expected a whole number from 0", slug="rank")
    return derive(seed, "rank", number) if number else seed


def current_rank() -> int:
    """The rank of this process: of torch's process group, else of the variable RANK, else 0.

    Raises:
        SamebitsError: RANK is not a whole number from 0; `rank`.
    """
    distributed: Any = loaded("torch.distributed", "is_available")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    text = os.environ.get("RANK", "0")
    if not (text.isascii() and text.isdigit()):
        message = f"the environment variable RANK is {text!r}; expected a whole number from 0"
        raise SamebitsError(message, slug="rank")
    return int(text)


def save_states() -> tuple[SourceState, ...]:
    """The states of all sources that are available, and of the generators that were registered by name.

    A generator that cannot be read is left out, with a warning.

    Raises:
        SamebitsError: a source failed; `rng-state`.
    """
    found = [_read(source) for source in _present()]
    return tuple(state for state in found if state is not None)


def restore_states(states: Iterable[SourceState] | SourceState, *, strict: bool = True) -> None:
    """Put sources back.

    What can be put back is put back before an error is raised.

    Args:
        states: what `save_states` gave, here or in another process, or one of these.
        strict: a state whose source is not available here is an error; else a warning. A source that is
            available and has no state among them goes on as it is, with a warning.

    Raises:
        SamebitsError: a state does not fit, or its source is not available; `rng-state`.
    """
    listed = [states] if isinstance(states, SourceState) else list(states)
    for state in listed:
        if not isinstance(state, SourceState):
            message = f"found {state!r} among the states; expected what `save_rng_states` gave"
            raise SamebitsError(message, slug="rng-state")
    present = {source.name: source for source in _present()}
    saved = {state.source: state for state in listed}
    failures = [_write(present[name], state) for name, state in saved.items() if name in present]
    absent = sorted(saved.keys() - present.keys())
    if absent:
        text = (
            f"there are states of {', '.join(absent)}, and no such source here; import the libraries and "
            "register the generators first, or pass `strict=False`"
        )
        if strict:
            failures.append(text)
        else:
            warnings.warn(f"samebits: {text}", stacklevel=2)
    _raise(failures)
    left = [name for name, source in present.items() if name not in saved and _can_be_saved(source)]
    if left:
        text = f"there are no states of {', '.join(left)}, which go on as they are"
        warnings.warn(f"samebits: {text}", stacklevel=2)


@contextmanager
def isolated() -> Iterator[None]:
    """Draw as you like inside; afterwards every generator is where it was before, also after an exception.

    Put back are all sources, the generators that were registered, and every generator object that is alive:
    of Python and NumPy all of them, of torch those made while control was active.

    Raises:
        SamebitsError: a state could not be put back; `rng-state`.
    """
    with _kept(_present(), live=True), _counting_apart():
        yield


@contextmanager
def reseeded(*keys: int | str, seed: int | None = None) -> Iterator[None]:
    """Inside, every source begins with a seed of that name; afterwards it is where it was before.

    So a call that draws gives the same result each time. A source that cannot be saved is not seeded, with a
    warning, and generator objects are left alone.

    Args:
        keys: the name, as for `stream`.
        seed: from 0 to 2**64 - 1; by default the run seed.

    Raises:
        SamebitsError: no seed is given or in force, `no-seed`; it is no seed, `seed`; a key is neither a
            whole number nor text, `stream-key`; a state could not be put back, `rng-state`.
    """
    base = required(PROCESS.run_seed) if seed is None else check_seed(seed)
    inner = derive(base, "reseeded", *check_keys(keys))
    present = [source for source in sources() if source.available()]
    with _kept(present, live=False) as kept, _counting_apart("reseeded", inner):
        seed_sources(inner, [source for source in present if source.name in kept])
        yield


@contextmanager
def _kept(present: list[RngSource], *, live: bool) -> Iterator[set[str]]:
    """Put those sources, and live objects when asked to, back at the end; gives the names of the sources."""
    found = [(source, _read(source)) for source in present]
    states = [(source, state) for source, state in found if state is not None]
    objects = LiveStates.of_now() if live else LiveStates(())
    try:
        yield {source.name for source, _ in states}
    finally:
        failures = [_write(source, state) for source, state in states]
        failures += objects.restore()
        _raise(failures)


@contextmanager
def _counting_apart(*scope: int | str) -> Iterator[None]:
    """What is created without a seed inside does not count outside, and a seed set inside ends there."""
    current, seeds = PROCESS.current, (PROCESS.seed, PROCESS.base_seed)
    forked = None if current is None else current.fork(*scope)
    if forked is not None:
        PROCESS.push(forked)
    try:
        yield
    finally:
        PROCESS.seed, PROCESS.base_seed = seeds
        if forked is not None:
            PROCESS.drop(forked)


def _present() -> list[RngSource]:
    return [source for source in sources() if source.available()] + registered_sources()


def _can_be_saved(source: RngSource) -> bool:
    try:
        source.get_state()
    except SamebitsError as error:
        return error.slug != UNSAVED_SLUG
    return True


def _read(source: RngSource) -> SourceState | None:
    """The state; None, with a warning, when there is none that can be read."""
    try:
        return SourceState(source.name, source.version(), bytes(source.get_state()))
    except Exception as error:
        if isinstance(error, SamebitsError) and error.slug == UNSAVED_SLUG:
            warnings.warn(f"samebits: {error}", stacklevel=2)
            return None
        message = f"the state of {source.name} ({source.version()}) cannot be read: {_one_line(error)}"
        raise SamebitsError(message, slug="rng-state") from error


def _write(source: RngSource, state: SourceState) -> str:
    """Set the state.

    Returns:
        What failed; empty when nothing did.
    """
    try:
        source.set_state(state.data)
    except Exception as error:  # noqa: BLE001 - whatever a library makes of a foreign state
        return (
            f"the state of {source.name}, saved with {state.version}, does not fit {source.version()} here: "
            f"{_one_line(error)}; restore it with the version that saved it"
        )
    return ""


def _raise(failures: Iterable[str]) -> None:
    """Raise one error for all failures; texts that are empty are none."""
    text = "; ".join(failure for failure in failures if failure)
    if text:
        raise SamebitsError(text, slug="rng-state")


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
