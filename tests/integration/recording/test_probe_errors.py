"""Errors inside a probe: the script does not see them, the record says that something is missing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from sentence_support import notes_of  # noqa: E402

from samebits.recording.probes import ops  # noqa: E402
from samebits.recording.probes.contents import Contents  # noqa: E402
from samebits.recording.probes.op_rows import OpRows  # noqa: E402
from samebits.recording.session import record  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402


class Unprintable(int):
    """A number whose text is an error."""

    def __repr__(self) -> str:
        raise ZeroDivisionError("no text")

    __str__ = __repr__


def notes_and_kinds(path):
    with RecordReader(path) as reader:
        return notes_of(reader.info), [event.kind for event in reader.events()]


def train(steps=2, numbers=None):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        for parameter in model.parameters() if numbers is not None else ():
            optimizer.state[parameter]["mine"] = numbers
        optimizer.step()
    return model


def seed():
    torch.manual_seed(Unprintable(3))


def batch():
    loader = torch.utils.data.DataLoader([1, 2], batch_size=None, collate_fn=Unprintable)
    assert [int(number) for number in loader] == [1, 2]


def step():
    train(numbers=Unprintable(3))


@pytest.mark.parametrize(
    ("act", "kind"), [(seed, "a seed"), (batch, "a batch"), (step, "a step")], ids=["seed", "batch", "step"]
)
def test_an_error_of_a_probe_is_noted_once_and_the_rest_is_recorded(tmp_path, act, kind):
    """The script runs to its end."""
    with record(tmp_path / "a.sbr") as path:
        act()
        act()
        train()
    notes, kinds = notes_and_kinds(path)

    note = f"recording of {kind} failed and left something out (ZeroDivisionError: no text)"
    assert [n for n in notes if n.startswith("recording of")] == [note]
    assert kinds.count("step") >= 2


@pytest.mark.parametrize(
    ("names", "in_parts"),
    [
        ([(Contents, "begin"), (Contents, "observe")], "1"),
        ([(Contents, "finish"), (ops, "flatten_outputs")], "1"),
        ([(OpRows, "add")], ""),
    ],
    ids=["before", "after", "at once"],
)
def test_an_error_at_an_op_leaves_its_result_alone(tmp_path, monkeypatch, names, in_parts):
    """Each op runs once, whether looking at it fails before or after."""
    monkeypatch.setenv("SAMEBITS_READ_ALL", in_parts)

    def fails(*_, **__):
        raise ZeroDivisionError("not this one")

    x = torch.zeros(3)
    with record(tmp_path / "a.sbr", level="op") as path:
        with monkeypatch.context() as patch:
            for owner, name in names:
                patch.setattr(owner, name, fails)
            x.add_(1)
            values, _ = torch.ones(3).max(0)
        y = x * 2
    notes, _ = notes_and_kinds(path)

    assert (x.tolist(), values.item(), y.tolist()) == ([1.0] * 3, 1.0, [2.0] * 3)
    assert notes == (
        "recording of an operation failed and left something out (ZeroDivisionError: not this one)",
    )
    with RecordReader(path) as reader:
        assert [e.op for e in reader.events(("op",))][-1] == "aten::mul.Tensor"


def test_an_interrupt_passes(tmp_path, monkeypatch):
    """Ctrl-C inside a probe is the script's."""

    def ends(*_):
        raise KeyboardInterrupt

    from samebits.recording.probes import batches

    monkeypatch.setattr(batches, "leaves_of", ends)
    with pytest.raises(KeyboardInterrupt), record(tmp_path / "a.sbr"):
        list(torch.utils.data.DataLoader([1, 2]))
