"""What both forms of the guard share: counters, one inspected step, what is done on a mismatch."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from types import MethodType
from typing import TYPE_CHECKING, Any

from torch.nn.parameter import is_lazy

from samebits._runtime.frames import show_warning
from samebits.errors import SamebitsError
from samebits.replay_guard._gradients import averaging_modules, check_wrappers, joining, with_wrappers
from samebits.replay_guard._inspection import Inspection, StepFacts
from samebits.replay_guard._rank_exchange import Ranks
from samebits.replay_guard._step import Scope
from samebits.replay_guard.mismatch import Mismatch, ReplayMismatchError
from samebits.replay_guard.sentences import rank_words
from samebits.rng.active import PROCESS
from samebits.rng.code_generators import CodeGenerators

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from samebits.replay_guard._inspection import Work
    from samebits.replay_guard._step import GuardedStep

_MOST_KEPT = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How a guard works; see `ReplayGuard`.

    Args:
        modules: whose parameters and buffers the step works on.
        every: how many steps make one that is executed again.
        policy: `raise`, `warn` or a function.
        across_ranks: None for where a module averages gradients.
        group: the process group; None for the default one.
    """

    modules: tuple[torch.nn.Module, ...]
    every: int
    policy: str | Callable[[Mismatch], Any]
    across_ranks: bool | None
    group: Any


class Engine:
    """Counts steps, has them inspected, and does what is to be done on a mismatch.

    Args:
        settings: of the guard.

    Attributes:
        steps: the number of steps that are done.
        replays: the number of them that were executed again and compared.
        counts: rank -> the number of mismatches.
        found: the last mismatches.
        busy: whether a step is going on that is to be executed again.
        watching: whether hooks of `ReplayGuard.watch` are in place.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._modules: tuple[torch.nn.Module, ...] | None = None
        self.steps = self.replays = 0
        self.counts: dict[int, int] = {}
        self.found: tuple[Mismatch, ...] = ()
        self.busy = self.watching = False
        self._audited: set[Any] = set()
        self._generators: tuple[Any, CodeGenerators] | None = None

    def is_due(self) -> bool:
        """Tell whether the next step is to be executed again; not before all parameters exist."""
        if self.steps % self.settings.every:
            return False
        return not any(is_lazy(each) for module in self.settings.modules for each in module.parameters())

    def modules(self) -> tuple[torch.nn.Module, ...]:
        """Return what the step works on: the modules that the guard was given, or their wrappers.

        Raises:
            SamebitsError: they cannot be executed again; `replay-unused-parameters`, `replay-join`.
        """
        if self._modules is None:
            self._modules = with_wrappers(self.settings.modules)
            check_wrappers(self._modules)
        if joining(self._modules):
            message = (
                "the step runs within `join()`, where a rank without batches stops to call the guard while "
                "others go on: expected that all ranks call it equally often. Give each rank the same number "
                "of batches, such as by DistributedSampler, or do without the guard"
            )
            raise SamebitsError(message, slug="replay-join")
        return self._modules

    def scope(self, function: Any, arguments: Any, *, incoming: bool | None = None) -> Scope:
        """Return what a step works on.

        Args:
            function: what is called.
            arguments: what it is given.
            incoming: as in `Scope`; by default where a module averages gradients.
        """
        modules = self.modules()
        if self._generators is None or not _is_same(self._generators[0], function):
            roots = {"step": function, **{f"model{n}": module for n, module in enumerate(modules)}}
            self._generators = (function, CodeGenerators(roots))
        incoming = bool(averaging_modules(modules)) if incoming is None else incoming
        return Scope(modules, function, arguments, self._generators[1], incoming)

    def inspect(self, scope: Scope, step: GuardedStep, value: Any, work: Work) -> tuple[Mismatch, ...]:
        """Execute a step again; afterwards everything is as the first execution left it.

        Args:
            scope: what it works on.
            step: after its first execution.
            value: what that returned.
            work: executes it.
        """
        code, across = _code_of(scope.function), self.settings.across_ranks
        across = bool(averaging_modules(scope.modules)) if across is None else across
        facts = StepFacts(self.steps, self.replays, code in self._audited, across)
        inspection = Inspection(facts, scope, step, work, Ranks(self.settings.group))
        with unseen():
            try:
                step.first_done(value)
                found = inspection.mismatches()
            finally:
                step.finish()
        if inspection.compared:
            self._audited.add(code)  # on all ranks: they must execute it equally often
        self.replays += inspection.compared
        return found

    def report(self, found: tuple[Mismatch, ...]) -> None:
        """Keep mismatches, note them in a record, and do what the policy says.

        Raises:
            ReplayMismatchError: the policy is to raise.
        """
        known = tuple(map(self._with_history, found))
        self.found = (*self.found, *known)[-_MOST_KEPT:]
        for mismatch in known:
            if PROCESS.recording is not None:
                PROCESS.recording.note_mismatch(*_facts(mismatch))
        policy = self.settings.policy
        for mismatch in known:
            if callable(policy):
                policy(mismatch)
            elif policy == "raise":
                raise ReplayMismatchError(mismatch)
            elif Ranks(self.settings.group).number in mismatch.ranks:
                show_warning(f"samebits: {mismatch}")

    def _with_history(self, mismatch: Mismatch) -> Mismatch:
        earlier = max(self.counts.get(rank, 0) for rank in mismatch.ranks)
        for rank in mismatch.ranks:
            self.counts[rank] = self.counts.get(rank, 0) + 1
        return dataclasses.replace(mismatch, earlier=earlier)


def unseen() -> contextlib.AbstractContextManager[None]:
    """Return a context in which nothing is recorded."""
    recording = PROCESS.recording
    return contextlib.nullcontext() if recording is None else recording.paused()


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, MethodType) and isinstance(b, MethodType) and a == b)


def _code_of(function: Any) -> Any:
    """Return what tells one step function from another: its code, because closures are made anew."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    return code or getattr(type(function).__call__, "__code__", type(function))


def _facts(mismatch: Mismatch) -> tuple[str, ...]:
    name = mismatch.tensors[0].name if mismatch.tensors else ""
    ranks = "" if mismatch.ranks == (0,) and not mismatch.across_ranks else rank_words(mismatch.ranks)
    return str(mismatch.step), ranks, mismatch.kind.value, name, str(mismatch.n_tensors)
