"""The kernel of Fourier transforms: its bits, what must not matter to them, and how exact they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from ways import in_all_ways

import samebits
from samebits.portable._dispatch import PortableMode
from samebits.portable.backends.library import load
from samebits.portable.backends.native import NativeBackend
from samebits.portable.backends.reference import ReferenceBackend
from samebits.portable.kernels import complex_numbers, fourier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

ISAS = [isa for isa in ("avx512", "avx2", "neon", "scalar") if load() is not None and load().select(isa)]  # type: ignore[union-attr]
DTYPES = [torch.float32, torch.float64]
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 20, 22, 25, 31, 32, 37, 45, 48, 62, 64, 74, 77]
TRANSFORMS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "forward": lambda x, dim, n: fourier.transform_complex(x, dim, 1.0, inverse=False),
    "inverse": lambda x, dim, n: fourier.transform_complex(x, dim, 1 / n, inverse=True),
    "of reals": lambda x, dim, n: fourier.transform_reals(x.real.contiguous(), dim, n**-0.5),
    "to reals": lambda x, dim, n: fourier.transform_to_reals(x.narrow(dim, 0, n // 2 + 1), dim, n, 1.0),
}


@pytest.fixture(params=ISAS)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that this machine has."""
    kernels = load()
    assert kernels is not None
    kernels.select(request.param)
    yield request.param
    kernels.select("")
    kernels.set_threads(1)


def same_bits(one: Tensor, other: Tensor) -> bool:
    """NaNs are alike."""
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    words = torch.int32 if one.dtype == torch.float32 else torch.int64
    equal = one.contiguous().view(words) == other.contiguous().view(words)
    return one.shape == other.shape and bool((equal | (one.isnan() & other.isnan())).all())


def values(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Complex numbers with parts of that dtype; seed 3 has infinities, NaN and zeros of both signs."""
    rng = np.random.default_rng(seed)
    parts = torch.from_numpy(rng.standard_normal((*shape, 2)) * 10.0 ** rng.integers(-2, 3, (*shape, 2)))
    if seed == 3:
        flat = parts.view(-1)
        for i, special in enumerate([0.0, -0.0, 1e-40, float("inf"), float("nan")]):
            flat[(i * 37) % flat.numel()] = special
    return torch.complex(*parts.to(dtype).unbind(-1))


@pytest.mark.parametrize("name", complex_numbers.NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_and_quotients_have_the_bits_of_the_reference(
    isa: str, dtype: torch.dtype, name: str
) -> None:
    """Of one number after the other, whatever the length."""
    kernels = load()
    assert kernels is not None
    for n in (1, 3, 16, 67, 20001):
        x, y = values((n,), dtype, 3), values((n,), dtype, 1).roll(1)
        expected, found = torch.empty_like(x), torch.empty_like(x)
        ReferenceBackend().pairs(name, x, y, expected)
        for threads in (1, 2):
            kernels.set_threads(threads)
            NativeBackend(kernels).pairs(name, x, y, found)
            assert same_bits(found, expected)


def by_reference(monkeypatch: pytest.MonkeyPatch, name: str, x: Tensor, dim: int) -> Tensor:
    """The same transform without C."""
    for table in (fourier.stages_of, fourier.first_turns, fourier._chirp):
        table.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(fourier, "backend_of", lambda _: ReferenceBackend())
        patch.setattr(complex_numbers, "backend_of", lambda _: ReferenceBackend())
        patch.setattr("samebits.portable.kernels.elementwise.backend_of", lambda _: ReferenceBackend())
        found = TRANSFORMS[name](x, dim, x.shape[dim])
    for table in (fourier.stages_of, fourier.first_turns, fourier._chirp):
        table.cache_clear()
    return found


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("n", LENGTHS)
def test_c_gives_the_bits_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, isa: str, n: int, name: str
) -> None:
    """At every place of the dimension, and for every way in which transforms go side by side."""
    shapes = [((n,), 0), ((19, n), 1), ((3, n), 1), ((n, 18), 0), ((2, n, 5), 1)]
    for at, (shape, dim) in enumerate(shapes if isa == ISAS[0] else shapes[1:4]):
        x = values(shape, torch.float32, at)
        assert same_bits(TRANSFORMS[name](x, dim, n), by_reference(monkeypatch, name, x, dim))


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("n", [1, 2, 4, 6, 15, 16, 28])
def test_c_gives_the_bits_of_the_reference_in_float64(
    monkeypatch: pytest.MonkeyPatch, isa: str, n: int, name: str
) -> None:
    shapes = [((9, n), 1), ((n, 8), 0), ((n,), 0)]
    for at, (shape, dim) in enumerate(shapes if isa == ISAS[0] else shapes[:1]):
        x = values(shape, torch.float64, at + 1)
        assert same_bits(TRANSFORMS[name](x, dim, n), by_reference(monkeypatch, name, x, dim))


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_but_the_numbers_matters(dtype: torch.dtype, name: str) -> None:
    """How many transforms there are, which dimension it is, threads and instruction sets."""
    rng = np.random.default_rng(5)
    kernels = load()
    if kernels is None:
        pytest.skip("no C library")
    for n in [*map(int, rng.integers(1, 400, 12)), 1024, 4096, 8192]:
        x = values((21, n), dtype, n % 4)
        alone = torch.stack([TRANSFORMS[name](row, 0, n) for row in x])
        for isa in ISAS:
            kernels.select(isa)
            for threads in (1, 3):
                kernels.set_threads(threads)
                assert same_bits(TRANSFORMS[name](x, 1, n), alone)
                assert same_bits(TRANSFORMS[name](x.t().contiguous(), 0, n).t(), alone)
        kernels.select("")
        kernels.set_threads(1)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("shape", [(0, 6), (0, 5), (0, 37), (3, 0, 8)])
def test_transforms_of_nothing(name: str, shape: tuple[int, ...]) -> None:
    x, dim = values(shape, torch.float32, 0), len(shape) - 1
    found = TRANSFORMS[name](x, dim, shape[-1])
    assert found.shape == (*shape[:-1], shape[-1] // 2 + 1 if name == "of reals" else shape[-1])


def exact(x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The transforms of rows, from their definition, in long double."""
    n = x.shape[-1]
    turns = np.outer(np.arange(n), np.arange(n)) % n
    angle = 2 * np.longdouble("3.14159265358979323846264338327950288") * turns.astype(np.longdouble) / n
    real, imaginary = x.real.numpy().astype(np.longdouble), x.imag.numpy().astype(np.longdouble)
    cosine, sine = np.cos(angle), np.sin(angle)
    return real @ cosine + imaginary @ sine, imaginary @ cosine - real @ sine


def error(found: Tensor, real: np.ndarray, imaginary: np.ndarray) -> float:
    """The distance, relative to the length."""
    apart = (found.real.numpy() - real) ** 2 + (found.imag.numpy() - imaginary) ** 2
    return float(np.sqrt(apart.sum() / (real**2 + imaginary**2).sum()))


@pytest.mark.parametrize("n", [8, 30, 62, 97, 100, 121, 256, 1009, 1024])
@pytest.mark.parametrize("dtype", DTYPES)
def test_they_are_as_exact_as_those_of_torch(dtype: torch.dtype, n: int) -> None:
    x = torch.view_as_complex(torch.randn(8, n, 2, generator=torch.Generator().manual_seed(n)).to(dtype))
    ours = error(fourier.transform_complex(x, 1, 1.0, inverse=False), *exact(x))
    theirs = error(torch.fft.fft(x), *exact(x))
    assert ours < 1.5 * theirs


def test_factors_are_exact_where_they_can_be() -> None:
    """A quarter of a turn is (0, 1)."""
    assert fourier.turns(8, np.arange(0, 8, 2)).tolist() == [[1, 0], [0, 1], [-1, 0], [0, -1]]
    assert fourier.radices_of(2**5 * 3 * 3 * 7) == [4, 4, 2, 3, 3, 7]
    assert [fourier.greatest_prime(n) for n in (1, 2, 12, 37, 74, 961)] == [1, 2, 3, 37, 37, 31]


@pytest.mark.parametrize("dtype", [None, torch.float64])
@pytest.mark.parametrize("n", [1, 8, 9, 700])
def test_frequencies_of_samples(n, dtype):
    """Whole numbers times one number, as torch has them; with `out` too."""
    for function in (torch.fft.fftfreq, torch.fft.rfftfreq):
        expected = function(n, 0.3, dtype=dtype)
        for found in in_all_ways(lambda: [function(n, 0.3, dtype=dtype)]):  # noqa: B023 - called at once
            assert found == str(samebits.digest([expected]))
        with PortableMode():
            assert torch.equal(function(n, 0.3, out=torch.empty(0, dtype=expected.dtype)), expected)
