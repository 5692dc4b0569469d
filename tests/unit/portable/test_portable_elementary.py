"""Elementary functions: C against the reference, bit for bit, and both against high precision."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
import torch

from samebits.portable.backends.library import load
from samebits.portable.kernels.elementwise import BINARY, UNARY, binary, unary
from samebits.portable.reference import elementary
from samebits.portable.reference.coefficients import CONSTANTS, POLYNOMIALS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
DTYPES = (np.float32, np.float64)
SPECIAL = [
    "0",
    "-0.0",
    "inf",
    "-inf",
    "nan",
    "1",
    "-1",
    "2",
    "-2",
    "0.5",
    "-0.5",
    "3",
    "-3",
    "2.5",
    "-2.5",
    "8",
    "20",
    "-20",
    "5e-324",
    "1e-310",
    "-1e-310",
    "1e-45",
    "-1e-40",
    "1e-30",
    "1e300",
    "-1e300",
    "3.4e38",
    "-3.4e38",
    "88.72",
    "-88.9",
    "-103.9",
    "-104",
    "709.7",
    "709.79",
    "-745.1",
    "-745.2",
    "1e15",
    "-1e19",
    "1e22",
    "1e37",
    "6381956970095103e797",
    "524288",
    "524289",
    "0.65",
    "1.5",
    "0.4140625",
    "9007199254740993",
    "4503599627370497",
]


def values(dtype: type, seed: int, count: int = 24) -> np.ndarray:
    """Special numbers, numbers of ordinary size, any bits."""
    rng = np.random.default_rng(seed)
    whole = np.uint32 if dtype is np.float32 else np.uint64
    with np.errstate(all="ignore"):
        special = np.array([float(text) for text in SPECIAL]).astype(dtype)
    any_bits = rng.integers(0, np.iinfo(whole).max, count, dtype=whole).view(dtype)
    ordinary = [rng.uniform(-1, 1, count), rng.normal(size=count) * 3, np.exp(rng.uniform(-12, 12, count))]
    return np.concatenate([special, any_bits, *(part.astype(dtype) for part in ordinary)])


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    whole = np.int32 if one.dtype == np.float32 else np.int64
    nan = np.isnan(one) & np.isnan(other)
    return one.dtype == other.dtype and bool(np.all((one.view(whole) == other.view(whole)) | nan))


@pytest.fixture
def every_isa() -> Iterator[Iterator[str]]:
    """Goes through the instruction sets of this machine, each in use while it is the turn's."""
    kernels = load()
    if kernels is None:
        pytest.skip("no kernels")
    yield (isa for isa in ("avx512", "avx2", "neon", "scalar") if kernels.select(isa))
    kernels.select("")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary_is_the_reference(name: str, dtype: type, every_isa: Iterator[str]) -> None:
    x = values(dtype, seed=1)
    expected = elementary.unary(name, x)
    for isa in every_isa:
        ours = unary(name, torch.from_numpy(x)).numpy()
        assert same_bits(ours, expected), (isa, x[differing(ours, expected)][:5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "sigmoid"])
def test_blocks_of_small_arguments_are_the_reference(
    name: str, dtype: type, every_isa: Iterator[str]
) -> None:
    """Whole blocks of them take a shorter way, up to a limit, beyond which results may be subnormal."""
    limit = 87 if dtype is np.float32 else 708
    rng = np.random.default_rng(5)
    parts = [rng.uniform(-size, size, 1024) for size in (limit, 1, 1.02 * limit)]
    x = np.concatenate([*parts, [limit, -limit, np.nan, -0.0]]).astype(dtype)
    expected = elementary.unary(name, x)
    for isa in every_isa:
        ours = unary(name, torch.from_numpy(x)).numpy()
        assert same_bits(ours, expected), (isa, x[differing(ours, expected)][:5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_is_the_reference(name: str, dtype: type, every_isa: Iterator[str]) -> None:
    x, y = values(dtype, seed=2), np.random.default_rng(4).permutation(values(dtype, seed=3))
    expected = elementary.binary(name, x, y)
    for isa in every_isa:
        ours = binary(name, torch.from_numpy(x), torch.from_numpy(y)).numpy()
        wrong = differing(ours, expected)
        assert same_bits(ours, expected), (isa, x[wrong][:5], y[wrong][:5])


def differing(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return ~((one == other) & (np.signbit(one) == np.signbit(other)) | np.isnan(one) & np.isnan(other))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_tails_do_not_matter(threads: int) -> None:
    kernels = load()
    if kernels is None:
        pytest.skip("no kernels")
    x = torch.linspace(-3, 5, 40_003)
    kernels.set_threads(threads)
    whole = unary("tanh", x)
    parts = torch.cat([unary("tanh", part) for part in x.split(977)])
    kernels.set_threads(1)
    assert torch.equal(whole, parts)


def test_strides_and_empty_inputs() -> None:
    x = torch.rand(5, 6, 7).permute(2, 0, 1)
    assert torch.equal(unary("exp", x), unary("exp", x.contiguous()))
    assert unary("exp", x).stride() == x.stride()
    assert torch.equal(unary("exp", x[:, ::2]), unary("exp", x[:, ::2].contiguous()))
    assert unary("exp", torch.empty(0, 3)).shape == (0, 3)
    assert binary("pow", x, torch.tensor(2.5)).stride() == x.stride()
    assert torch.equal(
        binary("pow", x[:, :1], x), binary("pow", x[:, :1].expand_as(x).contiguous(), x.contiguous())
    )


EXACT = {
    **{
        name: getattr(mpmath, name)
        for name in [
            "exp",
            "expm1",
            "tanh",
            "erf",
            "erfc",
            "sinh",
            "cosh",
            "asin",
            "acos",
            "atan",
            "asinh",
            "acosh",
        ]
    },
    **{
        name: getattr(mpmath, name)
        for name in ["atanh", "sin", "cos", "tan", "log", "log10", "log1p", "erfinv"]
    },
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x, 2),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "log_ndtr": lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    "sinc": lambda x: mpmath.sinc(mpmath.pi * x),
    "logit": lambda x: mpmath.log(x) - mpmath.log(1 - x),
    "lgamma": mpmath.loggamma,
    "digamma": mpmath.digamma,
}
LOOSER = {"sinc": 2, "log_ndtr": 2, "lgamma": 2, "digamma": 4}
UNIT = {"asin", "acos", "atanh", "erfinv"}
POSITIVE = {"log", "log2", "log10", "rsqrt", "lgamma", "digamma"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in UNARY if name in EXACT])
def test_within_one_unit_of_the_last_place(name: str, dtype: type) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 60) if name in UNIT else rng.normal(size=60) * 4
    x = 1 + np.abs(x) if name == "acosh" else np.abs(x) if name in POSITIVE else x
    x = np.abs(rng.uniform(0, 1, 60)) if name == "logit" else np.abs(x) - 0.5 if name == "log1p" else x
    x = x[np.abs(x) > 1e-3].astype(dtype)
    got = unary(name, torch.from_numpy(x)).numpy()
    with mpmath.workdps(50):
        exact = [EXACT[name](mpmath.mpf(float(each))) for each in x]
    units = LOOSER.get(name, 1) if dtype is np.float64 else 1
    floor = 4 if name == "digamma" and dtype is np.float64 else 0  # its terms are larger than their sum
    for each, value, right in zip(x, got, exact, strict=True):
        unit = np.spacing(np.maximum(np.abs(dtype(float(right))), dtype(floor)))
        assert abs(mpmath.mpf(float(value)) - right) <= units * unit, (each, value, right)


def test_page_and_header_have_the_reference_coefficients() -> None:
    header = (ROOT / "native/portable/math_coefficients.h").read_text()
    page = (ROOT / "docs/reference/portable-numerics.md").read_text()
    for name, value in CONSTANTS.items():
        assert float.fromhex(found(rf"#define SBM_{name} (\S+?)f?$", header)) == value
        assert float.fromhex(found(rf"^\| `{name}` \| `(\S+)` \|$", page)) == value
    for name, terms in POLYNOMIALS.items():
        stem, kind = name[:-4], name[-3:]
        body = header.partition(f" sbm_{stem}_terms_{kind}(")[2].partition("}")[0]
        assert [float.fromhex(text) for text in re.findall(r"-?0x[0-9a-f.]+p[+-]\d+", body)] == list(
            reversed(terms)
        )
        row = found(rf"^\| `{name}` \| (.*) \|$", page)
        assert [float.fromhex(text) for text in re.findall(r"`(.*?)`", row)] == list(terms)


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match, pattern
    return match.group(1)
