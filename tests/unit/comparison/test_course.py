"""The numbers of losses and of values read that a record holds."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from event_tape import FakeRecord
from safetensors.torch import save

from samebits._runtime.frames import Site
from samebits.comparison.course import scalars
from samebits.digest import digest_many
from samebits.recording.kept_values import pack
from samebits.records.events import Event, RunInfo, TensorInfo
from samebits.records.kinds import EventKind, Level, Role


@dataclass
class CapturingRecord(FakeRecord):
    """A record that holds the elements of some tensors, one for each event."""

    held: dict[int, bytes] = field(default_factory=dict)

    def captured(self) -> dict[int, frozenset[int]]:
        """The positions of captured tensors, by event."""
        return {seq: frozenset((0,)) for seq in self.held}

    def captures(self, seq: int) -> dict[int, bytes]:
        """The captured tensors of an event."""
        return {0: self.held[seq]}


def event(seq: int, kind: EventKind, value: torch.Tensor) -> Event:
    """An event of one tensor."""
    info = TensorInfo(Role.OUT, "", str(value.dtype).removeprefix("torch."), tuple(value.shape))
    site = Site("train.py", 3, "main")
    return Event(seq, kind, 0, "", site, None, "", "", "", (info,), (digest_many([value]),), ())


@pytest.mark.parametrize(
    ("value", "numbers"), [(torch.tensor(0.5), [0.5]), (torch.tensor(1 + 2j), []), (torch.tensor(True), [])]
)
def test_a_value_that_is_no_number_is_left_out(value, numbers):
    """A complex number has no place on a curve."""
    listed = [event(0, EventKind.OP, value), event(1, EventKind.READ, value)]
    info = RunInfo(("train.py",), Level.OP, "finished")
    record = CapturingRecord(info, listed, held={0: save({"value": value})})
    assert [each.number for each in scalars(record)] == numbers


def test_a_loss_that_was_kept_itself():
    """As `run --values` keeps it; a loss that was not kept has no number."""
    losses = [torch.tensor(0.5), torch.tensor(0.25)]
    listed = [event(seq, EventKind.LOSS, loss) for seq, loss in enumerate(losses)]
    info = RunInfo(("train.py",), Level.STEP, "finished")
    record = CapturingRecord(info, listed, held={1: pack(losses[1], digest_many)})
    assert [each.number for each in scalars(record)] == [0.25]
