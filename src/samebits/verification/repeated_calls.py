"""Calls that are made again in this process, each recorded: of a function of a test, of a notebook's cell."""

from __future__ import annotations

import contextlib
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from samebits.recording.session import Ending, RecordingSession
from samebits.recording.settings import RecordingSettings
from samebits.records.kinds import Level
from samebits.rng.states import isolated, restore_states, save_states, seed_sources
from samebits.switches.switch import ONLY_PORTABLE
from samebits.verification._judge import verify_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from samebits.determinism.activation import Warn
    from samebits.determinism.context import Determinism
    from samebits.rng.states import SourceState
    from samebits.switches.switch import Control
    from samebits.verification.results import ScriptRun, Verification


@dataclass(frozen=True)
class CallsRequest:
    """What is called again, and how.

    Args:
        name: of what is called, in words.
        runs: how many calls are compared, at least 2.
        control: under which each call is made; None leaves it as it is.
        state_only: values that are only read out may differ.
        same_generators: each call begins with the generators that are there before the first. Otherwise those
            after the first begin with others, so that what relies on them gives other bits.
        warn: see `Activation`.
    """

    name: str
    runs: int = 2
    control: Control | None = None
    state_only: bool = False
    same_generators: bool = False
    warn: Warn | None = None


class RepeatedCalls:
    """The calls, one context for each; whoever iterates makes a call in each.

    If two calls differ, there are two more, in which every operation is recorded.

    Args:
        request: what is asked for.
        folder: for the records, which are no longer needed once all calls are made.

    Attributes:
        folder: the same.
        result: the verdict so far; None until two calls were compared.
    """

    def __init__(self, request: CallsRequest, folder: Path) -> None:
        self.result: Verification | None = None
        self._request = request
        self.folder: Final = folder
        self._states: tuple[SourceState, ...] = save_states() if request.same_generators else ()
        self._made = 0

    @property
    def passes(self) -> bool:
        """Tell whether the calls compared so far gave the same bits, as far as that was asked for."""
        return self.result is not None and passes(self.result, state_only=self._request.state_only)

    def __iter__(self) -> Iterator[AbstractContextManager[None]]:
        first = self.folder / "run-1.sbr"
        yield self._call(first)
        runs: tuple[ScriptRun, ...] = ()
        for number in range(2, self._request.runs + 1):
            other = self.folder / f"run-{number}.sbr"
            yield self._call(other)
            result = verify_records(str(first), str(other), self._request.name)
            runs = (*(runs or result.runs[:1]), *result.runs[1:])
            self.result = replace(result, runs=runs)
            if not self.passes:
                break
        if self.result is not None and not self.passes and _differs(self.result):
            yield from self._with_operations(runs)

    def _with_operations(self, runs: tuple[ScriptRun, ...]) -> Iterator[AbstractContextManager[None]]:
        first, second = (self.folder / f"op-{number}.sbr" for number in (1, 2))
        for path in (first, second):
            yield self._call(path, Level.OP)
        result = verify_records(str(first), str(second), self._request.name)
        if _differs(result):
            self.result = replace(result, runs=runs)

    @contextlib.contextmanager
    def _call(self, path: Path, level: Level = Level.STEP) -> Iterator[None]:
        self._made += 1
        if self._made > 1 and self._request.same_generators:
            restore_states(self._states, strict=False)
        elif self._made > 1:
            seed_sources(secrets.randbits(63))
        with controlled(self._request.control, self._request.warn), _recorded(path, level):
            yield


@contextlib.contextmanager
def repeated_calls(request: CallsRequest) -> Iterator[RepeatedCalls]:
    """Give calls that are made again; in the end all generators are put back.

    Args:
        request: what is asked for.
    """
    with isolated(), TemporaryDirectory() as name:
        yield RepeatedCalls(request, Path(name))


def passes(result: Verification, *, state_only: bool) -> bool:
    """Tell whether runs were identical, as far as that was asked for.

    Args:
        result: of the verification.
        state_only: values that are only read out may differ.
    """
    return result.comparison.identical or (state_only and result.comparison.state == "identical")


def _differs(result: Verification) -> bool:
    return result.comparison.verdict == "different"


@contextlib.contextmanager
def _recorded(path: Path, level: Level) -> Iterator[None]:
    """Record the block as if a process began with it: earlier seeds of generators are none of its own."""
    session = RecordingSession(RecordingSettings(str(path), level=level), tuple(sys.argv))
    session.start()
    session.watch_draws()
    try:
        yield
    except BaseException as error:
        session.finish(Ending("failed", failure=f"{type(error).__name__}: {error}"))
        raise
    session.finish()


@contextlib.contextmanager
def controlled(control: Control | None, warn: Warn | None = None) -> Iterator[Determinism | None]:
    """Put a block in this process under control, portable mode too if that is part of it.

    Args:
        control: what is asked for; None for nothing.
        warn: see `Activation`.

    Yields:
        The control of the process; None without.
    """
    with contextlib.ExitStack() as stack:
        active: Determinism | None = None
        if control is not None and control != ONLY_PORTABLE:
            from samebits.determinism.context import Determinism

            active = stack.enter_context(Determinism(control, warn))
        if control is not None and control.portable:
            from samebits.portable.activation import portable

            stack.enter_context(portable())
        yield active
