"""What the arguments of ops are: the C module says what Python says, or nothing."""

from __future__ import annotations

import pytest
import torch

from samebits.digest import native
from samebits.portable import _scan as scanning
from samebits.portable._scan import (
    UnfitError,
    ZeroTensorError,
    quick_scan,
    quick_signature,
    scan,
    signature,
)


class Own(torch.Tensor):
    """A class of tensors without a dispatch of its own."""


_DTYPES = """
    float32 float64 float16 bfloat16 bool complex64 float8_e5m2
    int8 uint8 int16 int32 int64 uint16
"""
MAKE = {
    **{name: lambda name=name: torch.ones(2, 2).to(getattr(torch, name)) for name in _DTYPES.split()},
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "class": lambda: torch.ones(2).as_subclass(Own),
    "view": lambda: torch.ones(3, 4).t()[::2],
    "nothing": lambda: torch.ones(0, 3),
    "number": lambda: torch.tensor(1.0),
    "negated": lambda: torch._neg_view(torch.ones(2)),
    "zeros": lambda: torch._efficientzerotensor(3),
    "later zeros": lambda: torch._efficientzerotensor(3)[1:],
    "one bit": lambda: torch.empty(2, dtype=torch.int1),
    "meta": lambda: torch.ones(2, device="meta"),
    "sparse": lambda: torch.eye(2).to_sparse(),
    "csr": lambda: torch.eye(2).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "onednn": lambda: torch.ones(2, 2).to_mkldnn(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
    "generator": torch.Generator,
    "text": lambda: "sum",
    "dtype": lambda: torch.complex64,
    "sizes": lambda: [2, 3],
}


def _by_python(values, ask=scan):
    try:
        return ask(values)
    except (UnfitError, ZeroTensorError):
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKE)
def test_the_quick_scan_says_the_same_or_nothing(name):
    """Alone, beside a float16 tensor, and in lists."""
    value, half = MAKE[name](), torch.ones(2, dtype=torch.float16)

    for values in ((value,), (half, 2, value, None), ([1.0, half], (value, True)), [value]):
        quick = quick_scan(values)
        assert quick < 0 or quick == _by_python(values)


@pytest.mark.skipif(native.open_scanner() is None, reason="no C module, or torch before 2.10")
def test_the_quick_scan_says_what_plain_tensors_are():
    x = torch.ones(2)

    assert (
        quick_scan((x, [x.bfloat16(), 3], torch.nn.Parameter(x), None, 0.5)) == scanning.FLOATS | scanning.LOW
    )
    assert quick_scan((x.long(), x > 0)) == 0
    assert quick_scan({}) == scanning._NOT_PLAIN


@pytest.mark.filterwarnings("ignore")
def test_quick_signatures_differ_where_signatures_do():
    x = torch.ones(2, 3)
    values = [make() for make in MAKE.values()]
    values += [
        x.t(),
        x[0],
        x.double(),
        0,
        1,
        2**40,
        2**70,
        1.0,
        None,
        (),
        [],
        [1],
        [[1], 1],
        [1, 1],
        (x, x),
        [x],
    ]
    lists = (
        [(value,) for value in values] + [(x, value) for value in values] + [[value, 3] for value in values]
    )
    pairs = [(quick_signature(each), _by_python(each, signature)) for each in lists]

    for quick, slow in pairs:
        for other, other_slow in pairs:
            assert quick is None or quick != other or slow == other_slow


@pytest.mark.skipif(native.open_scanner() is None, reason="no C module, or torch before 2.10")
def test_quick_signatures_do_not_depend_on_contents():
    x, y = torch.ones(2, 3), torch.zeros(2, 3)

    assert (
        quick_signature((x, [y, None], 1.5, True)) == quick_signature((y, (x, None), 2.5, True)) is not None
    )
    assert quick_signature((x,) * 40) is None  # longer than fits
    assert quick_signature({}) is None


def test_without_the_module_there_is_python(monkeypatch):
    x = torch.arange(5000.0)
    monkeypatch.setattr(native, "load_module", lambda: None)

    quick_scan, quick_signature = scanning._quick()
    assert quick_scan((x,)) < 0
    assert quick_signature((x,)) is None
