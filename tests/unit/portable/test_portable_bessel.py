"""Modified Bessel functions, `erfcx` and windows in portable mode."""

from __future__ import annotations

import math

import pytest
import torch
from opinfo import check_op

from samebits.portable._dispatch import PortableMode

mpmath = pytest.importorskip("mpmath")
WANTED = {
    "i0": lambda x: mpmath.besseli(0, x),
    "i1": lambda x: mpmath.besseli(1, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
}
PLACES = [
    *(k * 0.83 for k in range(-29, 60)),
    1e-5,
    7.0,
    7.01,
    19.999,
    20.0,
    -20.0,
    20.001,
    100.0,
    700.0,
    713.0,
    1e5,
]


@pytest.mark.parametrize("name", WANTED)
def test_values_to_the_last_digits(name):
    with PortableMode():
        found = getattr(torch.special, name)(torch.tensor(PLACES, dtype=torch.float64)).tolist()
    for x, value in zip(PLACES, found, strict=True):
        with mpmath.workdps(40):
            wanted = WANTED[name](mpmath.mpf(x))
            if abs(wanted) < 1.7e308 and wanted:
                assert abs(mpmath.mpf(value) / wanted - 1) < 2e-15, x
            elif wanted:
                assert math.isinf(value), x


@pytest.mark.parametrize("name", WANTED)
def test_values_at_the_ends(name):
    x = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0])
    ends = {
        "i0": [torch.inf, torch.inf, torch.nan, 1],
        "i1": [torch.inf, -torch.inf, torch.nan, 0],
        "i0e": [0, 0, torch.nan, 1],
        "i1e": [0, 0, torch.nan, 0],
        "erfcx": [0, torch.inf, torch.nan, 1],
    }
    with PortableMode():
        found = getattr(torch.special, name)(x)
    torch.testing.assert_close(found, torch.tensor(ends[name]), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["i0", "special.i0e", "special.i1", "special.i1e", "special.erfcx"])
def test_ops_agree_with_torch(name, dtype):
    check_op(name, dtype, limit=3)


@pytest.mark.parametrize("variant", ["mvlgamma_p_1", "mvlgamma_p_3", "mvlgamma_p_5"])
def test_mvlgamma_agrees_with_torch(variant):
    check_op("mvlgamma", torch.float64, variant=variant, limit=3)


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_gradients(name):
    x = torch.tensor([-25.0, -3.0, 0.5, 2.0, 21.0], dtype=torch.float64, requires_grad=True)
    with PortableMode():
        function = getattr(torch.special, name)
        size = function(x).detach()  # they grow as exp(x)
        assert torch.autograd.gradcheck(lambda x: function(x) / size, (x,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 101])
@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_windows_are_close_to_torch(name, length, dtype):
    make = getattr(torch, f"{name}_window")
    for periodic in (True, False):
        plain = make(length, periodic, dtype=dtype)
        with PortableMode():
            ours = make(length, periodic, dtype=dtype)
        close = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}[dtype]
        torch.testing.assert_close(ours, plain, rtol=close, atol=close)


def test_windows_with_parameters():
    plain = [torch.kaiser_window(5, True, 8.0), torch.hamming_window(5, False, 0.6, 0.3)]
    with PortableMode():
        ours = [torch.kaiser_window(5, True, 8.0), torch.hamming_window(5, False, 0.6, 0.3)]
        with pytest.raises(RuntimeError):
            torch.hann_window(-1)
    torch.testing.assert_close(ours, plain)


def test_von_mises():
    torch.manual_seed(0)
    where, width = torch.tensor([0.1, 1.0]), torch.tensor([1.0, 30.0])
    plain = torch.distributions.VonMises(where, width).log_prob(torch.tensor([0.2, 0.9]))
    with PortableMode():
        made = torch.distributions.VonMises(where, width)
        ours = made.log_prob(torch.tensor([0.2, 0.9]))
        assert made.sample((2000,)).mean(0).tolist() == pytest.approx([0.1, 1.0], abs=0.1)
    torch.testing.assert_close(ours, plain)
