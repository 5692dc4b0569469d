"""Where a training was saved, and the RNG states there, as plain values that any checkpoint can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from samebits.integrations._all_ranks import RankValues, number_of_ranks
from samebits.integrations._arguments import refused, warn
from samebits.integrations._loader_watch import Continuation, States
from samebits.rng.states import SourceState, current_rank

_VERSION = 1
_FIELDS = {
    "epoch": int,
    "consumed": int,
    "batches": int,
    "workers": int,
    "persistent": bool,
    "mid_step": bool,
}


@dataclass(frozen=True, slots=True)
class Position:
    """Where a training was saved, on one rank.

    Args:
        epoch: from 0.
        consumed: batches of this epoch that the training used.
        batches: of an epoch; -1 where that is not known.
        workers: of the loader.
        persistent: whether they live on from epoch to epoch.
        mid_step: it was saved within a step, as after an exception.
        now: RNG states.
        begin: those before the iterator of this epoch was made; none where that was not seen.
        ahead: those before each fetch of a batch that was not used yet; None where workers load.
    """

    epoch: int
    consumed: int
    batches: int
    workers: int
    persistent: bool
    mid_step: bool
    now: States
    begin: States = ()
    ahead: tuple[States | None, ...] = ()

    @property
    def is_mid_epoch(self) -> bool:
        """Whether batches of the epoch remain."""
        return self.consumed > 0 and self.consumed != self.batches

    def continuation(self, *, skip: int) -> Continuation:
        """Return how the epoch goes on; see `Continuation`."""
        return Continuation(self.begin, skip, self.ahead, self.now)

    def to_plain(self) -> dict[str, Any]:
        """Return numbers, text, lists and dicts."""
        ahead = [None if states is None else _plain(states) for states in self.ahead]
        numbers = {name: getattr(self, name) for name in _FIELDS}
        return {**numbers, "now": _plain(self.now), "begin": _plain(self.begin), "ahead": ahead}

    @classmethod
    def from_plain(cls, value: Any) -> Position:
        """Read what `to_plain` gave.

        Raises:
            SamebitsError: it is something else; `exact-resume`.
        """
        try:
            numbers: dict[str, Any] = {name: value[name] for name in _FIELDS}
            ahead = tuple(None if states is None else _states(states) for states in value["ahead"])
            now, begin = _states(value["now"]), _states(value["begin"])
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise refused("what samebits saved in the checkpoint is damaged") from error
        if any(type(numbers[name]) is not kind for name, kind in _FIELDS.items()):
            raise refused("what samebits saved in the checkpoint is damaged")
        return cls(**numbers, now=now, begin=begin, ahead=ahead)

    def check_loader(self, loader: Any) -> None:
        """Refuse a loader that cannot go on in the middle of the epoch.

        Raises:
            SamebitsError: it has other workers or another length; the iterator was not seen; it was saved
                within a step; `exact-resume`.
        """
        if self.mid_step:
            raise refused("the checkpoint was saved in the middle of a step; take one from between steps")
        if not self.begin:
            raise refused(
                f"the checkpoint is from the middle of epoch {self.epoch}, and the loader is none of torch's "
                "own, nor samebits.DataLoader, so its position is not known"
            )
        for name, saved, here in (
            ("num_workers", self.workers, loader.num_workers),
            ("batches of an epoch", self.batches, length_of(loader)),
        ):
            if saved != here:
                raise refused(
                    f"{name}: {saved} when it was saved and {here} now; expected the same in the "
                    "middle of an epoch"
                )
        if self.persistent and self.epoch > 0:
            raise refused(
                "the workers of the loader live on from epoch to epoch, and their generators are not saved; "
                "use persistent_workers=False or a checkpoint from the end of an epoch"
            )


def length_of(loader: Any) -> int:
    """Return the batches of an epoch; -1 where that is not known."""
    try:
        return len(loader)
    except TypeError:
        return -1


class Checkpoints:
    """Makes what checkpoints hold, one after the other; `from_checkpoint` reads it."""

    def __init__(self) -> None:
        self._values = RankValues()

    def saved(self, position: Position, moment: object, *, waits: bool) -> dict[str, Any]:
        """Return what a checkpoint holds: the positions of all ranks.

        Every rank calls it for each checkpoint. Where some did not, it warns.

        Args:
            position: of this rank.
            moment: what all ranks call this moment of the training.
            waits: whether this rank writes the checkpoint; what the others are given may lack ranks.
        """
        ranks = self._values.gathered(position.to_plain(), str(moment), waits=waits)
        missing = [rank for rank, value in enumerate(ranks) if value is None]
        if waits and missing:
            shown = ", ".join(map(str, missing))
            warn(
                f"a checkpoint was saved without rank {shown}, so the training cannot be resumed from it "
                "with the same bits; expected that every rank saves, at the same step"
            )
        return {"version": _VERSION, "ranks": ranks}


def from_checkpoint(saved: Any) -> Position:
    """Return the position of this rank.

    Raises:
        SamebitsError: it is no such value; another number of ranks saved it, or not all; `exact-resume`.
    """
    if (
        not isinstance(saved, dict)
        or saved.get("version") != _VERSION
        or not isinstance(saved["ranks"], list)
    ):
        raise refused("what samebits saved in the checkpoint is of another version")
    ranks = number_of_ranks()
    if len(saved["ranks"]) != ranks:
        raise refused(f"it was saved on {len(saved['ranks'])} ranks, and there are {ranks} now")
    if None in saved["ranks"]:
        raise refused(
            f"rank {saved['ranks'].index(None)} did not save when the others did; expected a checkpoint that "
            "every rank saved, at the same step"
        )
    return Position.from_plain(saved["ranks"][current_rank() if ranks > 1 else 0])


def _plain(states: States) -> list[list[str]]:
    return [[state.source, state.version, state.data.hex()] for state in states]


def _states(value: Any) -> States:
    return tuple(SourceState(str(name), str(version), bytes.fromhex(data)) for name, version, data in value)
