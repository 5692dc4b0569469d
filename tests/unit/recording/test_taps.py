"""`samebits.tap`: what it records, and what it leaves alone."""

from __future__ import annotations

import dataclasses
import threading
from typing import NamedTuple

import numpy as np
import pytest
import torch

import samebits
from samebits.errors import SamebitsError
from samebits.recording.kept_values import pack, unpack
from samebits.recording.taps import TAPS
from samebits.records.kinds import EventKind
from samebits.records.notes import NoteCode
from samebits.records.reader import RecordReader
from samebits.report.notes import sentence


@dataclasses.dataclass
class Output:
    """Of a model."""

    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...]
    cache: None = None


class Pair(NamedTuple):
    """Of values."""

    left: np.float64
    right: list[int]


def tapped(path):
    """{name: [values of each call]} of a record, as NumPy integers and dtypes, and its notes."""
    values = {}
    with RecordReader(path) as reader:
        for event in reader.events((EventKind.TAP,)):
            captures = reader.captures(event.seq)
            for position, info in enumerate(event.tensors):
                name = f"{event.op}.{info.name}" if info.name else event.op
                kept = unpack(captures[position], info) if position in captures else None
                values.setdefault(name, []).append((info.dtype, info.shape, kept and kept.elements))
        return values, reader.info.notes


def recorded(tmp_path, act, **options):
    with samebits.record(tmp_path / "a.sbr", **options):
        act()
    return tapped(tmp_path / "a.sbr")


def floats(elements):
    return elements.bits.view("f4").tolist()


def test_without_a_recording_the_value_is_returned_and_nothing_else_happens():
    value = object()

    assert samebits.tap("any", value) is value
    assert TAPS.listeners == ()


@pytest.mark.parametrize("name", [3, None, "", torch.ones(1)])
def test_a_wrong_name_is_refused(name):
    with pytest.raises(SamebitsError, match=r'expected tap\("logits", tensor\)') as raised:
        samebits.tap(name, torch.ones(1))
    assert raised.value.slug == "tap-name"


def test_the_value_and_its_elements_are_recorded(tmp_path):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def act():
        assert samebits.tap("x", x) is x
        samebits.tap("x", x * 2).sum().backward()

    values, notes = recorded(tmp_path, act)

    assert [(dtype, shape, floats(e)) for dtype, shape, e in values["x"]] == [
        ("float32", (2, 2), [1, 2, 3, 4]),
        ("float32", (2, 2), [2, 4, 6, 8]),
    ]
    assert x.grad.tolist() == [[2, 2], [2, 2]]
    assert notes == ()


def test_a_later_change_in_place_does_not_matter(tmp_path):
    x = torch.zeros(2)

    values, _ = recorded(tmp_path, lambda: samebits.tap("x", x).add_(1))

    assert floats(values["x"][0][2]) == [0, 0]
    assert x.tolist() == [1, 1]


def test_parts_have_names(tmp_path):
    value = {
        "out": Output(torch.ones(1), (torch.zeros(2), torch.zeros(3))),
        3: Pair(np.float64(2), [1, 2, 3]),
        "text": "hé",
        "nothing": None,
        "ragged": [[1], [2, 3]],
    }

    values, notes = recorded(tmp_path, lambda: samebits.tap("v", value))

    described = {name: calls[0][:2] for name, calls in values.items()}
    assert described == {
        "v.out.logits": ("float32", (1,)),
        "v.out.hidden.0": ("float32", (2,)),
        "v.out.hidden.1": ("float32", (3,)),
        "v.3.0": ("float64", ()),
        "v.3.1": ("int64", (3,)),
        "v.text": ("uint8", (3,)),
        "v.ragged.0": ("int64", (1,)),
        "v.ragged.1": ("int64", (2,)),
    }
    assert notes == ()


@pytest.mark.parametrize(("value", "holds"), [(None, "it is None"), ({"a": [None]}, "dict holds no value")])
def test_a_value_that_holds_nothing_is_noted(tmp_path, value, holds):
    """A function that returns nothing must not look like a tensor that was compared."""
    values, notes = recorded(tmp_path, lambda: samebits.tap("x", value))

    assert values == {}
    assert len(notes) == 1
    assert "tap `x`" in sentence(notes[0])
    assert holds in sentence(notes[0])


class Array:
    """An array of another library."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3, dtype=np.int16)[::-1]


@pytest.mark.parametrize(
    ("value", "dtype", "bits"),
    [
        (np.array([1, 2], dtype=">i4"), "int32", [1, 2]),
        (np.arange(4, dtype=np.int8)[::2], "int8", [0, 2]),
        (np.array(True), "bool", [1]),
        (Array(), "int16", [2, 1, 0]),
        (7, "int64", [7]),
        ("", "uint8", []),
    ],
)
def test_what_numpy_can_convert_is_a_tensor(tmp_path, value, dtype, bits):
    values, _ = recorded(tmp_path, lambda: samebits.tap("v", value))

    found = values["v"][0]
    assert (found[0], found[2].bits.tolist()) == (dtype, bits)


@pytest.mark.parametrize(
    "value", [object(), np.array([object()]), 2**80, torch.empty(3, device="meta"), {"a": object()}]
)
def test_what_cannot_be_recorded_is_noted(tmp_path, value):
    values, notes = recorded(tmp_path, lambda: samebits.tap("odd", value))

    assert values == {}
    assert [(note.code, note.arguments[0], note.arguments[2]) for note in notes] == [
        (NoteCode.NOT_RECORDED, "tap", "odd")
    ]


def test_an_error_in_the_value_does_not_reach_the_script(tmp_path):
    class Broken:
        def __array__(self, *_, **__):
            raise LookupError("broken")

    values, notes = recorded(tmp_path, lambda: samebits.tap("odd", Broken()))

    assert values == {}
    assert "broken" in str(notes)


def test_transformed_and_traced_tensors_are_left_alone(tmp_path):
    def act():
        mapped = torch.func.vmap(lambda t: samebits.tap("mapped", t * 2))(torch.ones(3))
        assert mapped.tolist() == [2, 2, 2]
        traced = torch.jit.trace(lambda t: samebits.tap("traced", t + 1), torch.ones(2))
        assert traced(torch.zeros(2)).tolist() == [1, 1]

    values, notes = recorded(tmp_path, act)

    assert set(values) <= {"traced"}  # torch calls the function once more to check it, without tracing
    assert {note.arguments[2] for note in notes} == {"mapped", "traced"}


def test_threads_record_under_their_names(tmp_path):
    def act():
        thread = threading.Thread(target=lambda: samebits.tap("x", torch.ones(1)), name="other")
        thread.start()
        thread.join()

    recorded(tmp_path, act)

    with RecordReader(tmp_path / "a.sbr") as reader:
        assert [event.thread for event in reader.events((EventKind.TAP,))] == ["other"]


def test_inference_mode_and_no_grad(tmp_path):
    def act():
        with torch.inference_mode():
            assert samebits.tap("x", torch.ones(2)).is_inference()

    assert floats(recorded(tmp_path, act)[0]["x"][0][2]) == [1, 1]


@pytest.mark.parametrize("level", ["step", "op"])
def test_it_adds_no_event_but_its_own(tmp_path, level):
    x = torch.ones(3)

    recorded(tmp_path, lambda: samebits.tap("x", {"big": x.expand(400_000, 3), "c": x + 0j}), level=level)

    with RecordReader(tmp_path / "a.sbr") as reader:
        ops = [event.op for event in reader.events() if event.kind in (EventKind.OP, EventKind.READ)]
    assert ops == ([] if level == "step" else ["aten::expand.default", "aten::add.Tensor"])


def test_the_same_elements_are_kept_once(tmp_path):
    x = torch.randn(1000)

    recorded(tmp_path, lambda: [samebits.tap(f"n{i % 3}", x) for i in range(50)])

    with RecordReader(tmp_path / "a.sbr") as reader:
        assert sum(map(len, reader.captured().values())) == 1


def test_odd_names_can_be_read_back(tmp_path):
    names = ["a\nb\x1b[31m", "☃", "x" * 100_000, "x" * 99_999 + "y", "\ud800"]

    values, _ = recorded(tmp_path, lambda: [samebits.tap(name, torch.ones(1)) for name in names])

    assert len(values) == len(names)


def test_a_secret_in_a_name_is_masked(tmp_path):
    secret = "ghp_" + "a1B2" * 9

    values, _ = recorded(tmp_path, lambda: samebits.tap(f"token={secret}", torch.ones(1)))

    assert list(values) == ["token=***"]
    assert secret.encode() not in (tmp_path / "a.sbr").read_bytes()


def test_modules_are_recorded_by_path(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Sequential(torch.nn.ReLU()))

    values, _ = recorded(tmp_path, lambda: model(torch.ones(1, 2)), tap_modules=["*"])
    chosen, _ = recorded(tmp_path, lambda: model(torch.ones(1, 2)), tap_modules=["1.*", "(model)"])

    assert list(values) == ["0", "1.0", "1", "(model)"]
    assert list(chosen) == ["1.0", "(model)"]


def test_what_a_module_gives_beside_tensors_is_left_out(tmp_path):
    class Cached(torch.nn.Module):
        def forward(self, x):
            return {"y": x, "cache": object()}

    values, notes = recorded(tmp_path, lambda: Cached()(torch.ones(1)), tap_modules=["*"])

    assert (list(values), notes) == (["Cached.y"], ())


def test_the_values_of_the_state_are_kept_on_demand(tmp_path):
    def act():
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    recorded(tmp_path, act, values=True)

    with RecordReader(tmp_path / "a.sbr") as reader:
        kinds = {reader.event(seq).kind for seq in reader.captured()}
    assert kinds == {EventKind.LOSS, EventKind.GRAD, EventKind.STEP}


def test_no_more_than_the_limit_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("samebits.recording.session.VALUE_BYTES", 3_000_000)

    _, notes = recorded(tmp_path, lambda: [samebits.tap("x", torch.randn(250_000)) for _ in range(5)])

    assert [(note.code, note.arguments) for note in notes] == [(NoteCode.VALUES_BOUND, ("3", "2"))]


def test_an_error_in_one_part_loses_no_other(tmp_path, monkeypatch):
    """The elements of the parts before it and after it are kept, and the error is noted."""

    def failing(tensor, digest):
        if tensor.shape == (2,):
            raise MemoryError("no room")
        return pack(tensor, digest)

    monkeypatch.setattr("samebits.recording.probes.tap_events.pack", failing)
    parts = {"a": torch.ones(1), "b": torch.ones(2), "c": torch.ones(3)}

    values, notes = recorded(tmp_path, lambda: samebits.tap("v", parts))

    assert {name: found[0][2] is not None for name, found in values.items()} == {
        "v.a": True, "v.b": False, "v.c": True,
    }  # fmt: skip
    assert [(note.code, note.arguments[:2]) for note in notes] == [
        (NoteCode.NOT_RECORDED, ("kept-value", "MemoryError: no room"))
    ]
