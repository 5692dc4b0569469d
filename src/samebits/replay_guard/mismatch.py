"""What the guard finds: frozen values, and the error that carries one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from samebits.recording.distance import Difference
    from samebits.recording.replay_results import Unrepeated


class MismatchKind(StrEnum):
    """What a difference between executions of one step shows."""

    TRANSIENT = "transient"
    """One execution differs, and all others of the same step agree: something went wrong once."""
    PERSISTENT = "persistent"
    """One rank gives other values than the rest, again and again."""
    NONDETERMINISTIC = "nondeterministic"
    """The step itself does not repeat: an op's kernel, or values that samebits cannot put back."""
    DIVERGED = "diverged"
    """The parameters, which all ranks should share, differ before the step begins."""


@dataclass(frozen=True, slots=True)
class DifferingTensor:
    """A tensor that two executions gave different bits for.

    Args:
        name: such as `output`, `gradient fc.weight`, `buffer bn.running_mean`.
        difference: how far apart; None where it cannot be measured, as between ranks.
    """

    name: str
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Executions of one step that did not give the same bits.

    `str(mismatch)` says it in English.

    Args:
        step: the number of the step, as the guard counts them, from 0.
        kind: what it shows.
        ranks: the rank that is wrong, by its number in the whole training; several where it cannot be told
            which of them is.
        executions: a letter for each execution, equal where the bits were: `abaa` says that only the second
            differed. Across ranks, one letter for each rank.
        odd: the execution that differs from all others, from 1; 1 is the one whose results the training uses.
            None where there is none.
        tensors: the first tensors that differ, at most 16.
        n_tensors: how many tensors differ.
        generators: RNG sources that two executions left in different states.
        ops: ops that gave other bits when each was executed again on the same inputs.
        device: the device and host of this rank.
        earlier: how many mismatches of the same ranks this guard has found before.
        across_ranks: whether executions on different ranks were compared; else executions on one.
        devices: the devices of the ranks, where they are not alike.
        error: what an execution raised where the first did not; empty if none did.
        ops_checked: whether the ops could be executed again one by one.
    """

    step: int
    kind: MismatchKind
    ranks: tuple[int, ...]
    executions: str
    odd: int | None = None
    tensors: tuple[DifferingTensor, ...] = ()
    n_tensors: int = 0
    generators: tuple[str, ...] = ()
    ops: tuple[Unrepeated, ...] = ()
    device: str = ""
    earlier: int = 0
    across_ranks: bool = False
    devices: tuple[str, ...] = ()
    error: str = ""
    ops_checked: bool = True

    @property
    def training_is_wrong(self) -> bool | None:
        """Whether the results that the training uses are the wrong ones; None where it cannot be told."""
        if self.kind == MismatchKind.TRANSIENT:
            return self.odd == 1
        return True if self.kind in (MismatchKind.PERSISTENT, MismatchKind.DIVERGED) else None

    def __str__(self) -> str:
        from samebits.replay_guard.sentences import described

        return described(self)


class ReplayMismatchError(SamebitsError):
    """Executions of one step did not give the same bits, and the guard is to raise.

    Args:
        mismatch: what was found.

    Attributes:
        mismatch: the same.
    """

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(str(mismatch), slug="replay-mismatch")
        self.mismatch = mismatch
