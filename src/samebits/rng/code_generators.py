"""The generators that a piece of code can draw from: saved, and put back so that it can run again."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.rng._object_walk import Walk, walk
from samebits.rng._source_states import raise_failures, write_state
from samebits.rng.active import PROCESS
from samebits.rng.generator_objects import RegisteredGenerator, registered_sources
from samebits.rng.sources.source import UNSAVED_SLUG
from samebits.rng.states import SourceState, sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.rng.active import Active
    from samebits.rng.sources.source import RngSource


@dataclass(frozen=True, slots=True)
class CodeStates:
    """The states of all generators that a piece of code can draw from, at one moment.

    Args:
        saved: each source and its state.
        counts: counts the generators that are made without a seed, while control is active.
    """

    saved: tuple[tuple[RngSource, SourceState], ...]
    counts: Active | None

    def named(self) -> dict[str, bytes]:
        """Return the states by the names of their sources."""
        return {source.name: state.data for source, state in self.saved}

    def restore(self) -> None:
        """Put every generator back.

        Raises:
            SamebitsError: one could not be put back; `rng-state`.
        """
        raise_failures([write_state(source, state) for source, state in self.saved])

    @contextmanager
    def again(self) -> Iterator[None]:
        """Run the body with the generators as they were then.

        The generators stay as the body leaves them; what it counts is forgotten at its end.

        Raises:
            SamebitsError: one could not be put back; `rng-state`.
        """
        self.restore()
        counts = None if self.counts is None else self.counts.fork()
        if counts is not None:
            PROCESS.push(counts)
        try:
            yield
        finally:
            if counts is not None:
                PROCESS.drop(counts)


class CodeGenerators:
    """Finds the generators that code can draw from: all RNG sources, those registered, those that it holds.

    Held are generators in attributes, containers and closures of the roots, and in the globals that the
    user's own functions among them name.

    Args:
        roots: name -> object, such as a function and the modules that it calls.
    """

    def __init__(self, roots: dict[str, Any]) -> None:
        self._roots = roots
        self._walk: Walk | None = None

    def states(self, *, search: bool = False) -> CodeStates:
        """Return the present states. A source whose state cannot be read is left out.

        Args:
            search: look for held generators again, if the code may hold others by now.

        Raises:
            SamebitsError: reading one failed; `rng-state`.
        """
        known: list[RngSource] = [source for source in sources() if source.available()]
        known += registered_sources()
        saved = [
            (source, state) for source in (*known, *self._held(search=search)) if (state := _state(source))
        ]
        return CodeStates(tuple(saved), None if PROCESS.current is None else PROCESS.current.fork())

    def _held(self, *, search: bool) -> list[RngSource]:
        if self._walk is None or (search and not self._walk.large and self._walk.is_stale()):
            self._walk = walk(self._roots)
        held, seen = [], set()
        for found in self._walk.generators:
            generator = found.get()
            if generator is not None and id(generator) not in seen:
                seen.add(id(generator))
                held.append(_held_source(found.path, generator))
        return [source for source in held if source is not None]


def _held_source(path: str, generator: Any) -> RngSource | None:
    try:
        return RegisteredGenerator(f"generator:{path}", generator)
    except TypeError:  # a class of the user's own, without a state
        return None


def _state(source: RngSource) -> SourceState | None:
    try:
        return SourceState(source.name, source.version(), bytes(source.get_state()))
    except SamebitsError as error:
        if error.slug == UNSAVED_SLUG:
            return None
        raise
