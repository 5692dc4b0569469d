"""Every value that can be saved comes back as it was; the others are refused by the name of their place."""

import argparse
import dataclasses
import datetime as dt
import enum
import functools
import math
import pathlib
import random
from collections import Counter, OrderedDict, defaultdict, deque
from typing import NamedTuple

import numpy as np
import pytest
import torch

from samebits.checkpoint import load, save
from samebits.errors import SamebitsError

VALUES = {
    "none": None,
    "bool": True,
    "ints": [0, -1, 2**63, -(2**64), 1 << 5000],
    "floats": [0.0, 1e-320, 0.1, 1.7e308],
    "text": ["", "é", "\ud800", "a\0b", '"\\'],
    "bytes": [b"", bytes(range(256))],
    "bytearray": bytearray(b"ab"),
    "complex": complex(1.5, -0.0),
    "tuple": (1, (2, []), ()),
    "dict": {1: "one", "1": "text", (1, 2): "pair", None: 0, 2.5: {}},
    "ordered": OrderedDict([("b", 1), ("a", 2)]),
    "set": {1, "a", (2, 3)},
    "frozenset": frozenset({frozenset({1}), 2}),
    "deque": deque([1, 2], maxlen=3),
    "counter": Counter("hello"),
    "dtype": torch.bfloat16,
    "device": torch.device("cuda", 3),
    "size": torch.Size([2, 3]),
    "order of keys": {"z": 1, "a": 2},
    "type": {"type": "dict", "items": []},
}


class Colour(enum.Enum):
    """No plain value."""

    RED = 1


class Level(enum.IntEnum):
    """A number that is more than that."""

    LOW = 1


@dataclasses.dataclass
class Settings:
    """No plain value."""

    rate: float = 0.1


class Point(NamedTuple):
    """A tuple that is more than that."""

    x: int
    y: int


REFUSED = {
    "enum": (Colour.RED, "`.value`"),
    "enum of int": (Level.LOW, "`.value`"),
    "dataclass": (Settings(), "dataclasses.asdict"),
    "path": (pathlib.Path("a"), "str(…)"),
    "function": (math.sqrt, "code is not saved"),
    "lambda": (lambda: 1, "code is not saved"),
    "class": (Settings, "code is not saved"),
    "partial": (functools.partial(print), "code is not saved"),
    "namespace": (argparse.Namespace(a=1), "vars(…)"),
    "named tuple": (Point(1, 2), "tuple(…)"),
    "date": (dt.date(2026, 1, 1), "expected something with `state_dict`"),
    "subclass of dict": (type("Mine", (dict,), {})(), "dict(…)"),
    "factory": (defaultdict(lambda: 1), "defaultdict"),
    "object array": (np.array([None, "a"], dtype=object), "object"),
    "records": (np.zeros(2, dtype=[("a", "i4")]), "fields"),
    "masked array": (np.ma.array([1, 2], mask=[0, 1]), "numpy.asarray"),
    "meta": (torch.empty(2, device="meta"), "meta"),
    "os randomness": (random.SystemRandom(), "SystemRandom"),
}

# Made in the test: torch warns of them.
REFUSED_TENSORS = {
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), "nested"),
    "uncoalesced": (lambda: torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,)), "coalesce()"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "int_repr()"),
    "uninitialized": (lambda: torch.nn.LazyLinear(3), "UninitializedParameter"),
}


def back(tmp_path, value, **options):
    save(tmp_path / "c", value=value)
    return load(tmp_path / "c", **options).extra["value"]


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(tmp_path, name):
    value = VALUES[name]
    found = back(tmp_path, value)

    assert found == value
    assert type(found) is type(value)
    assert isinstance(value, (set, frozenset)) or repr(found) == repr(value)


def test_floats_come_back_bit_for_bit(tmp_path):
    values = [
        math.nan,
        -math.nan,
        math.inf,
        -math.inf,
        -0.0,
        np.frombuffer(b"\1\0\0\0\0\0\xf8\x7f")[0].item(),
    ]
    assert np.array(back(tmp_path, values)).tobytes() == np.array(values).tobytes()


def test_default_dict(tmp_path):
    found = back(tmp_path, defaultdict(list, {"a": [1]}))
    found["b"].append(2)
    assert found == {"a": [1], "b": [2]}


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_TENSORS])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_others_are_refused_by_name(tmp_path, name):
    value, advice = REFUSED.get(name) or (REFUSED_TENSORS[name][0](), REFUSED_TENSORS[name][1])
    save(tmp_path / "c", good=1)
    with pytest.raises(SamebitsError, match=r"^config\.0\.inner") as raised:
        save(tmp_path / "c", config=[{"inner": value}])

    assert raised.value.slug == "checkpoint-entry"
    assert advice in str(raised.value)
    assert "\n" not in str(raised.value)
    assert load(tmp_path / "c").extra == {"good": 1}  # the file that was there


def test_a_key_that_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(SamebitsError, match=r"history.<Colour.RED: 1> \(the key\) cannot be saved"):
        save(tmp_path / "c", history={Colour.RED: 1})


def test_endless_values_are_refused(tmp_path):
    endless: list = []
    endless.append(endless)
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(SamebitsError, match=r"contains itself, or is nested too deeply"):
            save(tmp_path / "c", value=value)


@pytest.mark.parametrize("name", ["strict", "map_location", "rng"])
def test_names_of_arguments_are_taken(tmp_path, name):
    with pytest.raises(SamebitsError, match=rf"{name} cannot be saved: `load` has an argument `{name}`"):
        save(tmp_path / "c", **{name: 1})


def test_too_much_beside_arrays(tmp_path, monkeypatch):
    """A header that could not be read again."""
    save(tmp_path / "c", value=1)
    monkeypatch.setattr("samebits.checkpoint._container.LONGEST_HEADER", 20_000)
    with pytest.raises(SamebitsError, match=r"the values beside arrays take \d+ bytes of JSON.*as arrays"):
        save(tmp_path / "c", losses=[0.5] * 10_000)
    monkeypatch.undo()
    assert load(tmp_path / "c").extra == {"value": 1}


def test_a_value_may_occur_twice(tmp_path):
    shared = [1]
    assert back(tmp_path, {"a": shared, "b": shared}) == {"a": [1], "b": [1]}


def test_steps_are_whole_numbers(tmp_path):
    for name in ("step", "epoch"):
        with pytest.raises(
            SamebitsError, match=f"{name} cannot be saved: it is 1.5; expected a whole number"
        ):
            save(tmp_path / "c", **{name: 1.5})


ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "negative strides": np.arange(6)[::-1],
    "zero dimensions": np.array(3, np.int16),
    "empty": np.empty((0, 3), np.float32),
    "bool": np.array([True, False]),
    "uint16": np.array([65535], np.uint16),
    "half": np.array([1.5], np.float16),
    "long": np.array([1.5], np.longdouble),
    "complex": np.array([1j], np.complex64),
    "big endian": np.array([1, 2], ">i4"),
    "text": np.array(["a", "bcd"]),
    "bytes": np.array([b"a"]),
    "no text": np.array([], "U0"),
    "times": np.array(["2026-01-01"], "datetime64[D]"),
    "spans": np.array([3], "timedelta64[ms]"),
    "read only": np.broadcast_to(np.arange(3), (2, 3)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back(tmp_path, name):
    array = ARRAYS[name]
    found = back(tmp_path, array)

    assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())
    assert found.flags.writeable
    assert found.flags.f_contiguous == array.flags.f_contiguous or name in ("negative strides", "read only")


@pytest.mark.parametrize(
    "scalar",
    [
        np.float64(0.1),
        np.int8(-3),
        np.bool_(True),
        np.str_("a"),
        np.datetime64("2026-01-01"),
        np.float32("nan"),
    ],
    ids=lambda scalar: type(scalar).__name__,
)
def test_numpy_scalars_come_back(tmp_path, scalar):
    found = back(tmp_path, scalar)
    assert type(found) is type(scalar)
    assert found.tobytes() == scalar.tobytes()


def test_generators(tmp_path):
    made = {"python": random.Random(1), "numpy": np.random.default_rng(2), "torch": torch.Generator()}

    def draw():
        return made["python"].random(), made["numpy"].random(), torch.rand(1, generator=made["torch"]).item()

    draw()
    save(tmp_path / "c", generators=made)
    expected = draw()
    load(tmp_path / "c", generators=made)
    assert draw() == expected
    with pytest.raises(SamebitsError, match=r"generators.python is the state of a generator; pass"):
        load(tmp_path / "c")


def test_arrays_that_are_made_for_saving_are_not_taken_for_each_other(tmp_path):
    """The memory of one that is gone is given to the next one of the same size."""

    class Statistics:
        def __init__(self, value):
            self.value = value

        def state_dict(self):
            return {"mean": np.full(2_000, self.value)[::2]}

        def load_state_dict(self, state):
            self.value = state["mean"][0]

    many = [Statistics(float(number)) for number in range(20)]
    save(tmp_path / "c", many=many)
    again = [Statistics(-1.0) for _ in many]
    load(tmp_path / "c", many=again)
    assert [one.value for one in again] == [one.value for one in many]
