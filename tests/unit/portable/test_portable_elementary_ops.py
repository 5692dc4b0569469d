"""Elementary functions in portable mode against plain torch, over torch's own samples."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op

from samebits.errors import SamebitsError
from samebits.portable._dispatch import PortableMode

DTYPES = (torch.float32, torch.float64)
UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "tanh",
    "sigmoid",
    "erf",
    "erfc",
    "rsqrt",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "sin",
    "cos",
    "tan",
    "sinc",
    "erfinv",
    "special.ndtr",
    "special.log_ndtr",
    "special.entr",
    "logit",
    "angle",
    "deg2rad",
    "rad2deg",
]
BINARY = [
    "atan2",
    "ldexp",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "xlogy",
    "special.xlog1py",
    "pow",
    "float_power",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_agrees_with_torch(name: str, dtype: torch.dtype) -> None:
    assert check_op(name, dtype, limit=12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_values_of_gamma_functions(name: str, dtype: torch.dtype) -> None:
    x = torch.linspace(-9.37, 40.11, 999, dtype=dtype)
    with PortableMode():
        ours = getattr(torch, name)(x)
    torch.testing.assert_close(
        ours, getattr(torch, name)(x), rtol=1e-5 if dtype == torch.float32 else 1e-11, atol=1e-5
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["decimals_0", "decimals_3", "decimals_neg_3"])
def test_rounding_to_decimals(variant: str, dtype: torch.dtype) -> None:
    assert check_op("round", dtype, variant=variant)


@pytest.mark.parametrize("order", range(5))
def test_derivatives_of_digamma(order: int) -> None:
    """Against mpmath's values, at negative and large numbers too."""
    mpmath = pytest.importorskip("mpmath")
    x = torch.tensor([1e-5, 0.3, 0.5, 1.0, 2.7, 10.0, 31.4, 1e4, -0.4, -3.6, -20.3], dtype=torch.float64)
    with PortableMode():
        ours = torch.special.polygamma(order, x)
        single = torch.special.polygamma(order, x.float())
    values = [float(mpmath.polygamma(order, mpmath.mpf(v))) for v in x.tolist()]
    torch.testing.assert_close(ours, torch.tensor(values, dtype=x.dtype), rtol=1e-12, atol=0)
    torch.testing.assert_close(
        single.double(), torch.special.polygamma(order, x.float()).double(), rtol=1e-4, atol=1e-4
    )


def test_polygamma_at_the_edges() -> None:
    """Poles are infinite, infinity gives 0, NaN stays."""
    x = torch.tensor([0.0, float("inf"), float("nan"), -2.0])
    with PortableMode():
        ours = torch.special.polygamma(1, x)
    torch.testing.assert_close(
        ours, torch.tensor([float("inf"), 0.0, float("nan"), float("inf")]), equal_nan=True
    )


def test_polygamma_of_large_negative_numbers_ends() -> None:
    """All of them are poles from 2^52 on; between poles far below zero it is refused."""
    x = torch.tensor([-1e17, -2.0, -30.0], dtype=torch.float64)
    with PortableMode():
        assert torch.special.polygamma(2, x).isinf().all()
        with pytest.raises(SamebitsError, match="below -10000"):
            torch.special.polygamma(2, torch.tensor([-20000.5]))


def test_digamma_has_a_gradient() -> None:
    """It is polygamma of order 1."""
    x = torch.rand(20, dtype=torch.float64).add(0.2).requires_grad_()
    with PortableMode():
        assert torch.autograd.gradcheck(torch.digamma, (x,))


@pytest.mark.parametrize("bounds", [(0, 0), (-1, 1), (0.25, 0.5)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_by_bins(bounds: tuple[float, float], dtype: torch.dtype) -> None:
    x = torch.randn(1000, dtype=dtype).mul(64).round().div(64)
    with PortableMode():
        ours = torch.histc(x, 16, *bounds)
    torch.testing.assert_close(ours, torch.histc(x, 16, *bounds), rtol=0, atol=0)


def test_counts_of_nothing_and_of_one_value() -> None:
    for x in (torch.zeros(0), torch.full((5,), 2.0), torch.tensor([0.0, float("nan"), 1.0])):
        bounds = (0.0, 1.0) if x.isnan().any() else ()
        with PortableMode():
            ours = torch.histc(x, 4, *bounds)
        assert torch.equal(ours, torch.histc(x, 4, *bounds))


@pytest.mark.parametrize("name", ["exp", "sin", "log", "rsqrt", "atan", "logit"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.uint8])
def test_integers_become_floats(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([1, 0, 1], dtype=dtype)
    with PortableMode():
        ours = getattr(torch, name)(x)
    torch.testing.assert_close(ours, getattr(torch, name)(x))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 4, 1.7, -3, float("inf"), float("nan")])
def test_powers_by_a_number(exponent: float) -> None:
    x = torch.tensor([0.0, -0.0, 1.5, -2.0, float("inf"), -float("inf"), float("nan"), 1.0])
    with PortableMode():
        ours = x**exponent
    torch.testing.assert_close(ours, x**exponent, equal_nan=True)


def test_integer_powers_stay_integers() -> None:
    x = torch.tensor([-3, 0, 7])
    with PortableMode():
        assert torch.equal(x**3, torch.tensor([-27, 0, 343]))
        assert torch.equal(torch.tensor([2]) ** torch.tensor([10]), torch.tensor([1024]))


@pytest.mark.parametrize("shape", [(3, 4, 5, 6)])
def test_results_keep_the_memory_format(shape: tuple[int, ...]) -> None:
    x = torch.rand(shape).to(memory_format=torch.channels_last)
    y = torch.rand(shape).permute(0, 1, 3, 2)
    with PortableMode():
        assert torch.exp(x).stride() == x.exp().stride()
        assert torch.exp(y).stride() == y.exp().stride()
        assert torch.exp(x[:, ::2]).shape == (3, 2, 5, 6)


def test_half_precision_is_rounded_once() -> None:
    x = torch.rand(100).to(torch.bfloat16)
    with PortableMode():
        ours = torch.exp(x)
    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours, x.double().exp().to(torch.bfloat16))
