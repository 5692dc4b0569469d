"""Linear algebra beside plain torch, in turns, smallest times.

python bench/portable_linalg.py [SIZE ...]     sizes of the matrices; 64, 128, 256 and 512 without
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import torch

import samebits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = 5


def ratio(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of one call in portable mode and in plain torch."""
    best = [float("inf")] * 2
    for turn in range(ROUNDS + 1):
        for i, mode in enumerate((samebits.portable, torch.no_grad)):
            with mode():
                start = time.perf_counter()
                call()
                spent = time.perf_counter() - start
            best[i] = min(best[i], spent) if turn else best[i]
    return best[0], best[1]


def cases(n: int, dtype: torch.dtype) -> Iterator[tuple[str, Callable[[], object]]]:
    """Name and call."""
    linalg = torch.linalg
    a, b = torch.randn(n, n, dtype=dtype), torch.randn(n, 8, dtype=dtype)
    symmetric, positive = a + a.mT, a @ a.mT + n * torch.eye(n, dtype=dtype)
    yield "eigh", lambda: linalg.eigh(symmetric)
    yield "svd", lambda: linalg.svd(a)
    yield "qr", lambda: linalg.qr(a)
    yield "cholesky", lambda: linalg.cholesky(positive)
    yield "lu_factor", lambda: linalg.lu_factor(a)
    yield "solve", lambda: linalg.solve(a, b)
    yield "inv", lambda: linalg.inv(a)
    yield "det", lambda: linalg.det(a)
    yield "slogdet", lambda: linalg.slogdet(a)
    yield "solve_triangular", lambda: linalg.solve_triangular(positive, b, upper=False)
    yield "cholesky_inverse", lambda: torch.cholesky_inverse(positive)
    yield "matrix_exp", lambda: linalg.matrix_exp(a / n**0.5)
    yield "pinv", lambda: linalg.pinv(a)
    yield "lstsq", lambda: linalg.lstsq(a, b)


def main() -> None:
    """Print a line for each case."""
    torch.manual_seed(0)
    for n in map(int, sys.argv[1:] or ("64", "128", "256", "512")):
        for dtype in (torch.float32, torch.float64):
            for name, call in cases(n, dtype):
                one, other = ratio(call)
                place = f"{name} of {n}, {str(dtype)[6:]}"
                print(f"{place:34} {one * 1e3:9.2f} ms  torch {other * 1e3:9.2f} ms  {one / other:5.1f}x")


if __name__ == "__main__":
    main()
