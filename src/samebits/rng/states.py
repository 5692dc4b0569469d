"""Seeding, saving and restoring all RNG sources of this process."""

from __future__ import annotations

import operator
import os
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng._source_states import (
    Pending,
    SourceState,
    can_be_saved,
    is_to_come,
    raise_failures,
    read_state,
    seed_source,
    write_state,
)
from samebits.rng.active import PROCESS, required
from samebits.rng.generator_objects import LiveStates, registered_sources
from samebits.rng.seeds import check_keys, check_seed, derive
from samebits.rng.sources import BUILT_IN
from samebits.rng.sources.plugins import plugins
from samebits.rng.sources.source import RngSource, loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    "seed_sources",
    "sources",
]


def sources() -> tuple[RngSource, ...]:
    """Return all known sources: those of samebits, then those of other packages.

    A package brings one by an entry point of the group `samebits.rng_sources`; see docs/reference/rng.md.
    """
    return BUILT_IN + plugins()


def seed_all(seed: int, *, rank: int | None = None) -> int:
    """Seed every source, and make the seed the run seed.

    A source whose library is not imported yet is seeded right after the import: NumPy's before `numpy.random`
    is first used, for example.

    Args:
        seed: from 0 to 2**64 - 1. One below 2**32 gives what `random.seed`, `numpy.random.seed` and
            `torch.manual_seed` give with it.
        rank: the rank of this process, from which it gets its own seed; None gives every process the same.

    Returns:
        The seed of this process.

    Raises:
        SamebitsError: the seed is invalid, `seed`, or the rank, `rank`; a source refused, `rng-seed`.
    """
    shared = check_seed(seed)
    seed = shared if rank is None else rank_seed(shared, rank)
    seed_sources(seed)
    PROCESS.use_seed(seed, shared)
    return seed


def seed_sources(seed: int, among: Iterable[RngSource] | None = None) -> None:
    """Seed sources, without making the seed the run seed.

    Those whose libraries are not imported yet are seeded right after the import.

    Args:
        seed: from 0 to 2**64 - 1.
        among: the sources; by default all. Devices that are not there are skipped.

    Raises:
        SamebitsError: a source refused; `rng-seed`.
    """
    for source in sources() if among is None else among:
        if source.available():
            seed_source(source, seed)
        elif is_to_come(source):
            PROCESS.waiting.seed(source, seed)


def rank_seed(seed: int, rank: int) -> int:
    """Return the seed of a process of a distributed run: rank 0 keeps it, the others' follow from it.

    So a run of one process is the same with and without `rank`.

    Raises:
        SamebitsError: the rank is invalid; `rank`.
    """
    try:
        number = operator.index(rank)
    except TypeError:
        number = -1
    if number < 0 or isinstance(rank, bool):
        raise SamebitsError(f"the rank is {rank!r}; expected a whole number from 0", slug="rank")
    return derive(seed, "rank", number) if number else seed


def current_rank() -> int:
    """Return the rank of this process: of torch's process group, else of the variable RANK, else 0.

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
    """Return the states of all sources and of the generators that were registered by name.

    For a source whose library is not imported yet, the state is the seed that waits for it, if any. A
    generator that cannot be read is left out, with a warning.

    Raises:
        SamebitsError: a source failed; `rng-state`.
    """
    states = [read_state(source) for source in _present()]
    states += [PROCESS.waiting.state(source) for source in sources() if is_to_come(source)]
    return tuple(state for state in states if state is not None)


def restore_states(states: Iterable[SourceState] | SourceState, *, strict: bool = True) -> None:
    """Put sources back.

    All states that fit are put back before an error is raised. A source whose library is not imported yet is
    put back right after the import.

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
            message = f"{state!r} is among the states; expected only states that `save_rng_states` gave"
            raise SamebitsError(message, slug="rng-state")
    present = {source.name: source for source in _present()}
    to_come = {source.name: source for source in sources() if is_to_come(source)}
    saved = {state.source: state for state in listed}
    failures = [_put_back(present[name], state) for name, state in saved.items() if name in present]
    for name in to_come.keys() & saved.keys():
        PROCESS.waiting.restore(to_come[name], saved[name])
    absent = sorted(saved.keys() - present.keys() - to_come.keys())
    if absent:
        text = (
            f"there are states of {', '.join(absent)}, but no such sources here; import the libraries and "
            "register the generators first, or pass `strict=False`"
        )
        if strict:
            failures.append(text)
        else:
            warnings.warn(f"samebits: {text}", SamebitsWarning, stacklevel=2)
    raise_failures(failures)
    others = [source for name, source in present.items() if name not in saved and can_be_saved(source)]
    left = [source.name for source in others if not _forget(source)]
    if left:
        text = f"there are no states of {', '.join(left)}; they are left unchanged"
        warnings.warn(f"samebits: {text}", SamebitsWarning, stacklevel=2)


@contextmanager
def isolated() -> Iterator[None]:
    """Put every generator back at the end of the block, also after an exception.

    That means all sources, the generators that were registered, and every generator object that is alive: all
    of Python's and NumPy's, and torch's if made while control was active. A source whose library is imported
    inside goes back to its state right after the import, or after the seeding that waited for it.

    Raises:
        SamebitsError: a state could not be put back; `rng-state`.
    """
    with _preserved(_present(), live=True), _counting_apart():
        yield


@contextmanager
def reseeded(*keys: int | str, seed: int | None = None) -> Iterator[None]:
    """Seed every source from the name, and put it back at the end of the block.

    So a call that draws gives the same result each time. A source that cannot be saved is not seeded, with a
    warning, and generator objects are left alone. A source whose library is imported inside is seeded then,
    and ends in the state that it would have if it had been imported outside.

    Args:
        keys: the name, as for `stream`.
        seed: from 0 to 2**64 - 1; by default the run seed.

    Raises:
        SamebitsError: no seed is given or in force, `no-seed`; the seed is invalid, `seed`; a key is neither
            a whole number nor text, `stream-key`; a state could not be put back, `rng-state`.
    """
    base = required(PROCESS.run_seed) if seed is None else check_seed(seed)
    inner = derive(base, "reseeded", *check_keys(keys))
    known = sources()
    present = [source for source in known if source.available()]
    with _preserved(present, live=False) as saved, _counting_apart("reseeded", inner):
        seed_sources(inner, [source for source in present if source.name in saved])
        for source in known:
            if is_to_come(source):
                PROCESS.waiting.seed(source, inner, only_if_saved=True)
        yield


@contextmanager
def _preserved(present: list[RngSource], *, live: bool) -> Iterator[set[str]]:
    """Put back the sources at the end, with `live` generator objects too; yield the names of the sources."""
    read = [(source, read_state(source)) for source in present]
    states = [(source, state) for source, state in read if state is not None]
    objects = LiveStates.of_now() if live else LiveStates(())
    known = sources()
    absent = [source for source in known if not source.available()]
    block = PROCESS.waiting.begin(known)
    try:
        yield {source.name for source, _ in states}
    finally:
        failures = [write_state(source, state) for source, state in states]
        failures += PROCESS.waiting.end(block)
        failures += objects.restore()
        for source in absent:
            _forget(source)
        raise_failures(failures)


@contextmanager
def _counting_apart(*scope: int | str) -> Iterator[None]:
    """Keep seeds that are set inside, and the count of generators made without one, inside the block."""
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


def _put_back(source: RngSource, state: SourceState) -> str:
    """Set the state of a source that is there, and return an error message, empty on success."""
    try:
        pending = Pending.from_bytes(source.name, state.data) or Pending(state=state)
        return pending.apply(source)
    except (SamebitsError, ValueError, LookupError, TypeError) as error:
        return f"the state of {source.name} does not fit {source.version()} here: {error}"


def _forget(source: RngSource) -> bool:
    """Remove a source that did not exist before; False when it cannot be removed."""
    forget = getattr(source, "forget", None)
    if forget is None:
        return False
    if source.available():
        forget()
    return True
