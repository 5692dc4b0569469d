"""The kernel of matrix products for a GPU, compiled for the CPU from its source: each thread is a fiber."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from samebits.portable.kernels.contractions import gemm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NATIVE = Path(__file__).resolve().parents[3] / "native"
COMPILER = shutil.which("g++")
IN_REGISTERS, IN_SHARED, APART = 0, 1, 2
SHAPE = ("ROWS", "COLUMNS", "DEPTH", "STAGES", "LINES", "GROUP")
HOST = """
#include "host_grid.h"
#include "gemm_body.h"

extern "C" void run(const float *a, const float *b, float *c, long a_line, long b_line, const int *sizes,
                    int reverse) {
    const gemm_product p = {a, b, c, a_line, b_line, 0, 0, 0, sizes[0], sizes[1], sizes[2], sizes[3]};
    const unsigned blocks = (unsigned)(p.k + GEMM_K_BLOCK - 1) / GEMM_K_BLOCK;
    const unsigned shares = blocks ? (blocks + p.blocks_each - 1) / p.blocks_each : 1;
    const unsigned across = (p.n + GEMM_COLUMNS - 1) / GEMM_COLUMNS, down = (p.m + GEMM_ROWS - 1) / GEMM_ROWS;
    host_launch({across, down, shares}, gemm_chosen::threads, gemm_chosen::shared_bytes, reverse,
                [=] { gemm_product_tile(p); });
}
"""
# m, n, k: whole tiles, odd sizes, less than a block of k, blocks that do not fill, skinny ones.
SIZES = [
    (128, 128, 128),
    (1, 1, 1),
    (77, 131, 300),
    (129, 65, 129),
    (3, 200, 1000),
    (200, 2, 257),
    (64, 64, 100),
    (5, 7, 0),
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    """Make a library of the kernel with the given macros."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("gemm")
    (folder / "gemm.cpp").write_text(HOST)

    def make(shape: Sequence[int], totals: int, along_k: tuple[int, int]) -> ctypes.CDLL:
        macros = [f"-DGEMM_{name}={value}" for name, value in zip(SHAPE, shape, strict=False)]
        macros += [
            f"-DGEMM_TOTALS={totals}",
            f"-DGEMM_A_ALONG_K={along_k[0]}",
            f"-DGEMM_B_ALONG_K={along_k[1]}",
        ]
        path = folder / ("gemm" + "_".join(map(str, (*shape, totals, *along_k))) + ".so")
        options = ["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", f"-I{NATIVE / 'cuda'}"]
        subprocess.run([COMPILER, *options, *macros, folder / "gemm.cpp", "-o", path], check=True)
        return ctypes.CDLL(str(path))

    return make


def operands(m: int, n: int, k: int, along_k: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return matrices with numbers of many sizes, contiguous along k or across it."""
    torch.manual_seed(m + n + k)
    a, b = torch.randn(m, k) * torch.exp2(torch.randint(-20, 20, (m, k))), torch.randn(k, n)
    return (a if along_k[0] else a.T.contiguous().T), (b.T.contiguous().T if along_k[1] else b)


def product(
    library: ctypes.CDLL,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    blocks_each: int | None = None,
    reverse: bool = False,
) -> torch.Tensor:
    """Return the product; `blocks_each` blocks of k for each share if chains are kept apart."""
    (m, k), n = a.shape, b.shape[1]
    blocks = max(1, -(-k // 128))
    sizes = (ctypes.c_int * 4)(m, n, k, blocks_each or blocks)
    c = torch.full((m, n) if blocks_each is None else (blocks, m, n), torch.nan)
    lines = [max(tensor.stride()) for tensor in (a, b)]
    addresses = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, c)]
    library.run(*addresses, *map(ctypes.c_long, lines), sizes, int(reverse))
    if blocks_each is None:
        return c
    total = torch.zeros(m, n)
    for chain in c:
        total += chain
    return total


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two results have the same bits."""
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


@pytest.mark.parametrize("totals", [IN_REGISTERS, IN_SHARED])
@pytest.mark.parametrize("along_k", [(1, 0), (0, 0), (1, 1), (0, 1)])
def test_products_have_the_bits_of_the_cpu(compiled, totals, along_k):
    """Each layout of the operands, each place of the totals; sizes that fill tiles and blocks, or do not."""
    library = compiled((128, 128, 16, 3), totals, along_k)
    for m, n, k in SIZES:
        a, b = operands(m, n, k, along_k)
        assert same_bits(product(library, a, b), gemm(a, b)), (m, n, k)


@pytest.mark.parametrize(
    "shape",
    [
        (128, 64, 16, 2),
        (64, 64, 8, 4, 8, 2),
        (128, 128, 8, 3, 16, 1),
        (64, 128, 32, 2),
        (128, 32, 8, 3, 16, 3),
    ],
)
def test_no_tile_shows_in_the_bits(compiled, shape):
    """Other tiles, outputs of a thread, groups of tiles, depths, stages; threads forward and backward."""
    library = compiled(shape, IN_SHARED, (1, 0))
    a, b = operands(350, 140, 300, (1, 0))
    expected = gemm(a, b)

    assert same_bits(product(library, a, b), expected)
    assert same_bits(product(library, a, b, reverse=True), expected)


def test_no_share_of_k_shows_in_the_bits(compiled):
    """However many thread blocks share the blocks of k of one output, their chains are added in one order."""
    library = compiled((64, 64, 16, 3), APART, (1, 0))
    for m, n, k in [(3, 70, 1000), (65, 2, 129), (4, 4, 128)]:
        a, b = operands(m, n, k, (1, 0))
        for blocks_each in (1, 2, 3, 8):
            assert same_bits(product(library, a, b, blocks_each=blocks_each), gemm(a, b)), (
                m,
                n,
                k,
                blocks_each,
            )


def test_views_that_are_not_aligned(compiled):
    """Rows that do not begin at multiples of 16 bytes are copied number by number."""
    library = compiled((64, 64, 16, 3), IN_SHARED, (1, 0))
    a, b = operands(130, 203, 260, (1, 0))
    a, b = a[1:129, 3:], b[:257, 5:197]

    assert same_bits(product(library, a, b), gemm(a, b))


def test_another_order_has_other_bits(compiled):
    """The comparison can fail: the sum of one chain over all k is another one."""
    library = compiled((64, 64, 16, 3), IN_SHARED, (1, 0))
    a, b = operands(40, 40, 1000, (1, 0))
    halves = product(library, a[:, :500], b[:500]) + product(library, a[:, 500:], b[500:])

    assert not same_bits(halves, gemm(a, b))
