"""The kernel that rotates rows gives the bits of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from samebits.portable._tensors import as_array, as_tensor
from samebits.portable.backends.library import load
from samebits.portable.backends.native import NativeBackend
from samebits.portable.backends.reference import ReferenceBackend
from samebits.portable.kernels.jacobi import Problem
from samebits.portable.kernels.reductions import sum_products_over
from samebits.portable.reference import jacobi as reference

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

SIZES = [(3, 1), (4, 2), (2, 4), (1, 5)]
# The last has several chunks of a reduction, and enough rows for several threads.
LARGE_SIZES = [(3, 17), (1, 33), (1, 100), (1, 260)]
KINDS = ["symmetric", "vectors", "values"]


def problem(batch: int, n: int, *, symmetric: bool, vectors: bool) -> Problem:
    a = torch.randn(batch, n, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    a[0] = torch.diag(torch.linspace(0, 1, n)) if batch > 1 else a[0] * torch.logspace(0, -9, n)
    if not symmetric:
        rows = torch.cat([a, torch.eye(n).expand(batch, n, n)], 2) if vectors else a
        return Problem(rows.contiguous(), n, None, 2.0**-49)
    rows = torch.cat([a + a.mT, torch.eye(n, dtype=torch.float64).expand(batch, n, n)], 2)
    return Problem(rows.contiguous(), n, torch.full((batch,), 2.0**-48, dtype=torch.float64), 0.0)


def rotated(backend: NativeBackend | ReferenceBackend, given: Problem) -> tuple[bytes, list[int]]:
    rows, done = given.rows.clone(), torch.full((given.rows.shape[0],), 7)
    backend.rotate(given._replace(rows=rows), 60 if rows.shape[1] < 100 else 2, done)
    return as_array(rows + 0.0).tobytes(), done.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("batch", "n"), SIZES)
def test_the_kernel_gives_the_bits_of_the_reference(batch: int, n: int, kind: str) -> None:
    check(problem(batch, n, symmetric=kind == "symmetric", vectors=kind == "vectors"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("batch", "n"), LARGE_SIZES)
def test_large_matrices_too(batch: int, n: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The reference's own sums would take minutes.
    def sum_products(a: Array, b: Array, dims: tuple[int, ...]) -> Array:
        return as_array(sum_products_over(as_tensor(a), as_tensor(b), dims))

    monkeypatch.setattr(reference, "sum_products_over", sum_products)
    check(problem(batch, n, symmetric=kind == "symmetric", vectors=kind == "vectors"))


def check(given: Problem) -> None:
    native = load()
    if native is None:
        pytest.skip("no kernels here")
    wanted = rotated(ReferenceBackend(), given)
    for isa in ("scalar", "avx2", "avx512", "neon"):
        for threads in (1, 2, 3) if native.select(isa) else ():
            native.set_threads(threads)
            assert rotated(NativeBackend(native), given) == wanted, (isa, threads)
    native.select("")
    native.follow_torch()
