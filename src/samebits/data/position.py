"""Where a loader is in its data: whole numbers, and what may follow them."""

from __future__ import annotations

import dataclasses
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from samebits.data.partition import Partition

VERSION = 1
_FIELDS = ("version", "seed", "order", "epoch", "position", "size", "global_batch")


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two batches.

    Args:
        seed: of the loader.
        order: the identity of its sampler.
        partition: how the order is cut.
        epoch: from 0.
        position: samples of the global order of this epoch that were handed over.
    """

    seed: int
    order: int
    partition: Partition
    epoch: int = 0
    position: int = 0

    def after_batch_of(self, position: int) -> Position:
        """After the global batch that holds that position of this epoch."""
        end = (position // self.partition.global_batch + 1) * self.partition.global_batch
        return dataclasses.replace(self, position=min(end, self.partition.positions))

    def after(self) -> Position:
        """The beginning of the next epoch."""
        return dataclasses.replace(self, epoch=self.epoch + 1, position=0)

    def at_epoch(self, epoch: int) -> Position:
        """The beginning of that epoch.

        Raises:
            SamebitsError: that is no epoch; `loader-option`.
        """
        number = _whole(epoch)
        if number < 0:
            message = f"the epoch is {epoch!r}; expected a whole number from 0"
            raise SamebitsError(message, slug="loader-option")
        return dataclasses.replace(self, epoch=number, position=0)

    def state(self) -> dict[str, int]:
        """What is saved."""
        cut = self.partition
        values = (VERSION, self.seed, self.order, self.epoch, self.position, cut.size, cut.global_batch)
        return dict(zip(_FIELDS, values, strict=True))


def check_state(state: Any, now: Position) -> Position:
    """The place that a state tells of.

    Args:
        state: what `Position.state` gave.
        now: of the loader that is to go on there.

    Raises:
        SamebitsError: it is no such state, or of other data; `loader-state`.
    """
    if not isinstance(state, dict) or not set(_FIELDS) <= state.keys():
        raise _refused(f"it has the entries {sorted(state) if isinstance(state, dict) else state!r}", _FIELDS)
    found = {name: _whole(state[name]) for name in _FIELDS}
    here = now.state()
    reasons = {
        "version": "the format is another one",
        "seed": "give the loader the seed of the run that is resumed",
        "size": "the number of samples changed",
        "order": "the sampler is another one",
        "global_batch": "choose batch_size so that batch_size times the number of ranks stays the same",
    }
    for name, reason in reasons.items():
        if found[name] != here[name]:
            raise _refused(f"{name} is {found[name]}", here[name], reason)
    position, cut = found["position"], now.partition
    whole = position % cut.global_batch == 0 or position == cut.positions
    if found["epoch"] < 0 or not 0 <= position <= cut.positions or not whole:
        raise _refused(f"epoch is {found['epoch']} and position {position}", "the end of a global batch")
    return dataclasses.replace(now, epoch=found["epoch"], position=position)


def _refused(found: str, expected: Any, reason: str = "it is no state of this loader") -> SamebitsError:
    message = f"the loader cannot go on from this state: {found}; expected {expected}; {reason}"
    return SamebitsError(message, slug="loader-state")


def _whole(value: Any) -> int:
    try:
        return -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return -1
