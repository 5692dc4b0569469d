"""The executions of one step beyond its first, and what they show."""

from __future__ import annotations

import dataclasses
import functools
import platform
from typing import TYPE_CHECKING, Any, Protocol

import torch

from samebits._runtime.frames import pass_on, show_warning
from samebits._torch.core import compiled_graphs
from samebits.environment.hardware import collect_machine
from samebits.errors import SamebitsError
from samebits.recording.distance import tensor_difference
from samebits.recording.op_check import ops_repeated
from samebits.replay_guard._judging import judge_executions, judge_ranks, letters, minority
from samebits.replay_guard._plain_state import side_effect
from samebits.replay_guard._rank_exchange import SharedCall, device_of, prepare, shared_call
from samebits.replay_guard.mismatch import DifferingTensor, Mismatch, MismatchKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recording.distance import Difference
    from samebits.recording.replay_results import Unrepeated
    from samebits.replay_guard._rank_exchange import Ranks
    from samebits.replay_guard._step import GuardedStep, Result, Scope
    from samebits.rng.code_generators import CodeStates

_MORE_EXECUTIONS = 2  # after two that differ
_OP_REPETITIONS = 4
_MOST_TENSORS = 16
_NO_MEMORY = ("OutOfMemoryError", "MemoryError")


class Work(Protocol):
    """**Protocol:** a step that can be executed again."""

    @property
    def arguments(self) -> Any:
        """What it is given on this rank."""

    def run(self, arguments: Any) -> Any:
        """Execute it and return what is compared."""


@dataclasses.dataclass(frozen=True, slots=True)
class StepFacts:
    """What a step is.

    Args:
        number: as the guard counts, from 0.
        turn: how many steps were executed again before it.
        audited: whether what it writes to was looked at before.
        across_ranks: whether it is compared with executions on other ranks.
    """

    number: int
    turn: int
    audited: bool
    across_ranks: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Told:
    """What a rank tells the others after two executions."""

    agrees: bool
    no_memory: bool
    weights: bytes
    device: str
    refusal: str = ""


class Inspection:
    """Executes a step again and finds mismatches; all ranks call it at the same step.

    Args:
        facts: what the step is.
        scope: what it works on.
        step: after its first execution.
        work: executes it.
        ranks: those that train together.

    Attributes:
        compared: whether there was memory to execute the step again.
    """

    def __init__(self, facts: StepFacts, scope: Scope, step: GuardedStep, work: Work, ranks: Ranks) -> None:
        self._facts, self._scope, self._step, self._work, self._ranks = facts, scope, step, work, ranks
        self.compared = False

    def mismatches(self) -> tuple[Mismatch, ...]:
        """Return what was found, the same on all ranks.

        Raises:
            SamebitsError: the step cannot be executed again; `replay-side-effect`, `replay-refused`.
        """
        # Not compared: compiled code runs eagerly while it is watched.
        watched = None if self._facts.audited else self._again(audited=True)
        second = self._again()
        if watched is not None and watched.error and not second.error:
            _warn_of_unseen_writes(watched.error)
        told = self._ranks.gather(self._told(second))
        refusal = next((each.refusal for each in told if each.refusal), "")
        if refusal:
            raise side_effect(refusal)
        if any(each.no_memory for each in told):
            _warn_of_memory()
            return ()
        self.compared = True
        if not all(each.agrees for each in told):
            return self._own_mismatches(second)
        if self._facts.across_ranks and self._ranks.size > 1:
            return self._among_ranks(told)
        return ()

    def _again(self, *, audited: bool = False) -> Result:
        return self._step.again(lambda: self._work.run(self._work.arguments), audited=audited)

    def _told(self, second: Result) -> _Told:
        foreign = self._step.foreign
        return _Told(
            agrees=second.key == self._step.result.key,
            no_memory=second.error.startswith(_NO_MEMORY),
            weights=self._step.weights,
            device=_describe(device_of(self._scope.modules, self._work.arguments)),
            refusal=f"writes to memory that existed before it ({foreign[0]})" if foreign else "",
        )

    # One rank's own executions.

    def _own_mismatches(self, second: Result) -> tuple[Mismatch, ...]:
        """Execute more often, on all ranks alike because the step may wait for other ranks."""
        first = self._step.result
        executions = [first, second, *(self._again() for _ in range(_MORE_EXECUTIONS))]
        judgement = judge_executions([each.key for each in executions])
        errors = [each.error for each in executions if each.error]
        checked = self._ops()
        ops = checked or ()
        tensors, n_tensors = first_difference(executions)
        own = None
        if judgement.kind is not None:
            own = Mismatch(
                step=self._facts.number,
                kind=MismatchKind.NONDETERMINISTIC if ops else judgement.kind,
                ranks=(self._ranks.number,),
                executions=letters([each.key for each in executions]),
                odd=None if ops else judgement.odd,
                tensors=tensors,
                n_tensors=n_tensors,
                generators=_generators(executions),
                ops=ops,
                device=_place(device_of(self._scope.modules, self._work.arguments)),
                error=errors[0] if errors else "",
                ops_checked=checked is not None,
            )
        refused = errors[0] if len(errors) > 1 else ""
        gathered = self._ranks.gather((refused, own))
        self._refuse([error for error, _ in gathered])
        return _with_others([each for _, each in gathered])

    def _refuse(self, errors: list[str]) -> None:
        error = next(filter(None, errors), "")
        if error:
            raise SamebitsError(
                f"the step cannot be executed a second time: it raised {error}. Expected forward and "
                "backward with what the step is given. Fetch the batch before it, and call "
                "`scaler.unscale_`, `optimizer.step` and `scaler.update` after it.",
                slug="replay-refused",
            )

    def _ops(self) -> tuple[Unrepeated, ...] | None:
        """Execute the step once more, and each op of it several times.

        Returns:
            the ops that gave other bits; None where they could not be executed one by one: compiled code, or
            an execution that failed before one was found.
        """
        if compiled_graphs():
            return None
        try:
            with ops_repeated(_OP_REPETITIONS) as summary:
                failed = self._again().error
            return summary().unrepeated or (None if failed else ())
        except Exception as error:  # noqa: BLE001 - what was found is told without it
            pass_on(error)
            return None

    # The step of one rank on all.

    def _among_ranks(self, told: list[_Told]) -> tuple[Mismatch, ...]:
        devices = tuple(each.device for each in told)
        diverged = minority([each.weights for each in told])
        if diverged:
            return (self._diverged(diverged, [each.weights for each in told], devices),)
        data = self._call()
        if data is None:
            show_warning(
                "samebits: ReplayGuard cannot send the arguments of the step to other ranks, so the ranks "
                "were not compared"
            )
            return ()
        call = SharedCall.from_bytes(data, device_of(self._scope.modules, self._work.arguments))
        results = [self._execute(call)]
        firsts = self._ranks.gather(results[0].key)
        if len(set(firsts)) == 1:
            if results[0].error:
                show_warning(
                    f"samebits: the step raised {results[0].error} on the data of another rank, so the ranks "
                    "were not compared"
                )
            return ()
        results.append(self._execute(call))
        seconds = self._ranks.gather(results[1].key)
        judgement = judge_ranks(firsts, seconds)
        if judgement.kind is None:
            return ()
        names = _names_that_differ(firsts)
        return (
            Mismatch(
                step=self._facts.number,
                kind=judgement.kind,
                ranks=self._numbers(judgement.ranks),
                executions=letters(firsts),
                tensors=tuple(DifferingTensor(name) for name in names[:_MOST_TENSORS]),
                n_tensors=len(names),
                across_ranks=True,
                devices=devices,
                error=next((key[2] for key in firsts if key[2]), ""),
            ),
        )

    def _call(self) -> bytes | None:
        """Return the call of the rank whose turn it is; None where it cannot be sent."""
        leader = self._facts.turn % self._ranks.size
        data = None
        if leader == self._ranks.rank:
            data = self._step.as_begun(
                lambda states: shared_call(
                    self._scope, self._work.arguments, states, self._facts.number
                ).to_bytes()
            )
        return self._ranks.from_rank(leader, data)

    def _execute(self, call: SharedCall) -> Result:
        def ready(states: CodeStates) -> None:
            prepare(self._scope, call, states)

        return self._step.again(lambda: self._work.run(call.arguments), prepare=ready)

    def _numbers(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._ranks.numbers[rank] for rank in ranks)

    def _diverged(self, ranks: tuple[int, ...], weights: list[bytes], devices: tuple[str, ...]) -> Mismatch:
        names = self._step.parameter_names
        differing = [
            name
            for number, name in enumerate(names)
            if len({each[16 * number : 16 * number + 16] for each in weights}) > 1
        ]
        return Mismatch(
            step=self._facts.number,
            kind=MismatchKind.DIVERGED,
            ranks=self._numbers(ranks),
            executions=letters(weights),
            tensors=tuple(DifferingTensor(f"parameter {name}") for name in differing[:_MOST_TENSORS]),
            n_tensors=len(differing),
            across_ranks=True,
            devices=devices,
        )


def _warn_of_memory() -> None:
    text = (
        "there was no memory to execute a step again, so it was not checked: that takes the memory of "
        "one more set of gradients"
    )
    show_warning(f"samebits: {text}")


def _warn_of_unseen_writes(error: str) -> None:
    text = (
        f"ReplayGuard cannot see what the step writes to: while it was watched, it raised {error}. It is "
        "compared all the same, but memory other than gradients and buffers is not put back"
    )
    show_warning(f"samebits: {text}")


def _with_others(found: list[Mismatch | None]) -> tuple[Mismatch, ...]:
    """Return the mismatches of all ranks: one rank that does not repeat, where the others do, is at fault."""
    mismatches = [each for each in found if each is not None]
    if len(mismatches) == 1 and len(found) > 1:
        only = mismatches[0]
        if only.kind == MismatchKind.NONDETERMINISTIC and only.ops_checked and not only.ops:
            return (dataclasses.replace(only, kind=MismatchKind.PERSISTENT),)
    return tuple(mismatches)


def first_difference(executions: Sequence[Result]) -> tuple[tuple[DifferingTensor, ...], int]:
    """Return the tensors of the first execution that gave others than the very first, and their number.

    Args:
        executions: one that raised gave no tensors, and is left out.

    Returns:
        at most 16 tensors; the number of all.
    """
    whole = [each for each in executions if not each.error]
    other = next((each for each in whole if each.key != whole[0].key), None)
    if other is None:
        return (), 0
    differing = _differing(whole[0], other)
    return tuple(differing[:_MOST_TENSORS]), len(differing)


def _differing(a: Result, b: Result) -> list[DifferingTensor]:
    if a.names != b.names:
        return [DifferingTensor(name) for name in sorted({*a.names} ^ {*b.names})]
    places = [n for n in range(len(a.names)) if _digest(a, n) != _digest(b, n)]
    return [
        DifferingTensor(a.names[n], _distance(a.tensors[n], b.tensors[n]) if shown < _MOST_TENSORS else None)
        for shown, n in enumerate(places)
    ]


def _digest(result: Result, number: int) -> bytes:
    return result.digests[16 * number : 16 * number + 16]


def _distance(a: Any, b: Any) -> Difference | None:
    try:
        return tensor_difference(a, b)
    except (ValueError, RuntimeError, NotImplementedError, TypeError):  # another shape or dtype, sparse
        return None


def _generators(executions: list[Result]) -> tuple[str, ...]:
    first = executions[0].generators
    others = [each.generators for each in executions[1:] if each.generators]  # read of those that differ
    return tuple(sorted(name for name in first if any(each.get(name) != first[name] for each in others)))


def _names_that_differ(keys: list[tuple[tuple[str, ...], bytes, str]]) -> list[str]:
    names = max((key[0] for key in keys), key=len)
    alike = [key[1] for key in keys if key[0] == names]
    return [name for n, name in enumerate(names) if len({each[16 * n : 16 * n + 16] for each in alike}) > 1]


@functools.lru_cache(maxsize=8)
def _describe(device: torch.device) -> str:
    """Return what kind of device it is, such as `NVIDIA H100`."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return collect_machine().processor if device.type == "cpu" else device.type


def _place(device: torch.device) -> str:
    return f"{device} ({_describe(device)}) of {platform.node()}"
