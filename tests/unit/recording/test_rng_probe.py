"""RNG sources as a record holds them: states at each boundary, and calls that seed."""

from __future__ import annotations

import sys
import types

import pytest

torch = pytest.importorskip("torch")

from samebits.recording import session as session_module  # noqa: E402
from samebits.recording.probes import rng as rng_module  # noqa: E402
from samebits.recording.session import record  # noqa: E402
from samebits.records.events import EARLIER  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402
from samebits.rng.sources import RECORDED  # noqa: E402
from samebits.rng.sources.source import BuiltInSource, StateFunction  # noqa: E402


class Dice(BuiltInSource):
    """A source that one class describes."""

    name = "dice"
    module = "planted_dice"
    record_order = 9
    recorded_functions = (StateFunction(("",), "shake", "planted_dice.shake"),)

    def state_reader(self):
        """Read the state of the planted module."""
        return lambda: ((self.name, torch.full((4,), sys.modules[self.module].state, dtype=torch.uint8)),)

    def earlier_seed(self):
        """Name the state of the planted module."""
        return "planted_dice.state"


@pytest.fixture
def dice(monkeypatch):
    module = types.ModuleType("planted_dice")
    module.state = 0
    exec("def shake(value):\n    global state\n    state = value\n", vars(module))  # noqa: S102 - planted
    monkeypatch.setitem(sys.modules, "planted_dice", module)
    for used in (session_module, rng_module):
        monkeypatch.setattr(used, "RECORDED", (*RECORDED, Dice()))
    return module


def events(path):
    with RecordReader(path) as reader:
        return list(reader.events(("rng",)))


def test_states_come_in_the_order_that_the_sources_give(tmp_path):
    with record(tmp_path / "a.sbr"):
        torch.manual_seed(3)
    states = [event for event in events(tmp_path / "a.sbr") if event.op == "state"]
    names = [info.name for info in states[0].tensors]
    assert names[:2] == ["torch", "python"]
    assert [source.name for source in RECORDED] == ["torch", "python", "numpy", "cuda"]


def test_a_source_that_is_one_class_is_recorded_with_states_and_seedings(tmp_path, dice):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tmp_path / "a.sbr"):
        dice.shake(7)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    found = events(tmp_path / "a.sbr")
    states = [
        event.digests[[info.name for info in event.tensors].index("dice")]
        for event in found
        if event.op == "state"
    ]
    assert len(states) >= 2
    assert states[0] != states[1]
    seeds = [event.arguments for event in found if event.op == "seed"]
    assert f"planted_dice.state{EARLIER}" in seeds
    assert "planted_dice.shake(7)" in seeds
    assert not hasattr(dice.shake, "__wrapped__")


def test_only_torch_tells_the_seed_that_it_chose(tmp_path):
    with record(tmp_path / "a.sbr"):
        chosen = torch.seed()
        torch.manual_seed(5)
    seeds = [event.arguments for event in events(tmp_path / "a.sbr") if event.op == "seed"]
    assert f"torch.seed() -> {chosen}" in seeds
    assert "torch.manual_seed(5)" in seeds
