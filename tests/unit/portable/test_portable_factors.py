"""The kernels of factors and of triangular systems give the bits of the reference, and tell what fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from samebits.portable.backends.library import load
from samebits.portable.backends.native import NativeBackend
from samebits.portable.backends.reference import ReferenceBackend
from samebits.portable.kernels.linalg import Reflections

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Backend = NativeBackend | ReferenceBackend

SHAPES = [(3, 1, 1), (2, 3, 5), (2, 5, 3), (1, 9, 9), (4, 4, 4)]
# More than one block of products, and on several threads.
LARGE = (1, 140, 140)


def matrices(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    a = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=dtype)
    if shape[0] > 1:
        a[0, 0, :] = a[0, :, -1] = 0  # nothing to reflect, no pivot
    if shape[0] > 2:
        a[1, -1, 0] = torch.nan
    return a


def reflected(backend: Backend, a: Tensor) -> list[Tensor]:
    batch, rows, columns = a.shape
    work, count = a.clone(), min(rows, columns)
    reflections = Reflections(a.new_zeros(batch, count, rows), a.new_empty(batch, count))
    backend.reflect_columns(work, reflections)
    q = torch.eye(rows, dtype=a.dtype).expand(batch, rows, rows).contiguous()
    backend.multiply_reflections(reflections, q)
    return [work, *reflections, q]


def lower_factors(backend: Backend, a: Tensor) -> list[Tensor]:
    square = a @ a.mT + torch.eye(a.shape[1], dtype=a.dtype)
    square[-1, -1, -1] -= 3 * (a.shape[0] > 1)  # one that has no factor
    out, info = torch.zeros_like(square), torch.zeros(a.shape[0], dtype=torch.int64)
    backend.cholesky(square, out, info)
    return [out, info]


def both_factors(backend: Backend, a: Tensor, *, pivot: bool = True) -> list[Tensor]:
    factors, count = a.clone(), min(a.shape[1:])
    pivots, info = (
        torch.zeros(a.shape[0], count, dtype=torch.int64),
        torch.zeros(a.shape[0], dtype=torch.int64),
    )
    backend.lu(factors, pivots, info, pivot=pivot)
    return [factors, pivots, info]


def unpivoted(backend: Backend, a: Tensor) -> list[Tensor]:
    return both_factors(backend, a, pivot=False)


def solutions(backend: Backend, a: Tensor) -> list[Tensor]:
    n = min(a.shape[1:])
    found = []
    for upper in (False, True):
        for triangle in (a[:, :n, :n], a.mT[:, :n, :n]):
            x = a[:, :n].clone()
            backend.solve_triangular(triangle, x, upper=upper, unit=upper)
            found.append(x)
    return found


WAYS = [reflected, lower_factors, both_factors, unpivoted, solutions]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [(shape, dtype) for shape in SHAPES for dtype in (torch.float32, torch.float64)]
    + [(LARGE, torch.float32)],
)
def test_the_kernels_give_the_bits_of_the_reference(
    way: Callable[[Backend, Tensor], list[Tensor]], shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    native = load()
    if native is None:
        pytest.skip("no kernels here")
    wanted = way(ReferenceBackend(), matrices(shape, dtype))
    for isa in ("scalar", "avx2", "avx512", "neon"):
        for threads in (1, 2, 3) if native.select(isa) else ():
            native.set_threads(threads)
            found = way(NativeBackend(native), matrices(shape, dtype))
            for one, other in zip(found, wanted, strict=True):
                assert torch.equal(one.nan_to_num(7), other.nan_to_num(7)), (isa, threads)
    native.select("")
    native.follow_torch()


def test_what_fails_is_told_with_its_place() -> None:
    a = matrices((2, 5, 5), torch.float64)
    assert both_factors(ReferenceBackend(), a)[2].tolist() == [5, 0]
    assert lower_factors(ReferenceBackend(), a)[1].tolist() == [0, 5]
