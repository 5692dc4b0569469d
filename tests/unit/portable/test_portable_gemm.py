"""Matrix products: every instruction set and thread count gives the bits of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
import torch

from samebits.portable.backends.library import Kernels, load
from samebits.portable.kernels.contractions import gemm
from samebits.portable.reference.contractions import gemm as reference

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTRUCTION_SETS = ("avx512", "avx2", "neon", "scalar")


class Case(NamedTuple):
    """A product: sizes, how the operands lie in memory, and the batch (0 for none)."""

    m: int
    n: int
    k: int
    left: str = "rows"
    right: str = "rows"
    batch: int = 0


EDGES = (
    Case(0, 3, 4),
    Case(3, 0, 4),
    Case(3, 4, 0),
    Case(1, 1, 0),
    Case(0, 3, 4, batch=2),
    Case(2, 3, 4, batch=0),
    Case(1, 1, 1),
    Case(8, 1, 100),
    Case(100, 1, 8, "columns"),
    Case(5, 1, 2050, "rows"),
    Case(1, 70, 300, "rows", "columns"),
    Case(1, 70, 300, "rows", "rows"),
    Case(70, 1, 300, "gaps", "gaps"),
    Case(1, 1, 1024),
    Case(1, 1, 2048 + 700),
    Case(1, 1100, 140),
    Case(15, 33, 128),
    Case(14, 32, 129),
    Case(29, 49, 127, "columns", "columns"),
    Case(61, 97, 520, "rows", "columns"),
    Case(230, 40, 530, "columns", "rows"),
    Case(9, 70, 33, "same", "same"),
    Case(7, 9, 260, "gaps", "columns", 3),
    Case(1, 40, 260, "rows", "columns", 3),
    Case(40, 1, 129, "rows", "rows", 3),
    Case(120, 90, 200, batch=2),
)


def draw(
    generator: np.random.Generator, shape: tuple[int, ...], layout: str, dtype: torch.dtype
) -> torch.Tensor:
    """A matrix, or a batch of them, of that layout."""
    *batch, rows, columns = shape
    full = {
        "rows": (rows, columns),
        "columns": (columns, rows),
        "gaps": (2 * rows + 1, 3 * columns),
        "same": (1, columns),
    }[layout]
    values = torch.from_numpy(generator.standard_normal((*batch, *full))).to(dtype)
    if layout == "columns":
        return values.transpose(-1, -2)
    if layout == "gaps":
        return values[..., 1::2, ::3]
    return values.expand(shape)


def draw_case(case: Case, dtype: torch.dtype, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Both operands."""
    generator = np.random.default_rng(seed)
    batch = (case.batch,) if case.batch else ()
    return (
        draw(generator, (*batch, case.m, case.k), case.left, dtype),
        draw(generator, (*batch, case.k, case.n), case.right, dtype),
    )


def random_cases(count: int) -> list[Case]:
    """Sizes around the edges of tiles, panels and blocks."""
    generator = np.random.default_rng(7)
    found = []
    for _ in range(count):
        m, n = (int(generator.choice((1, 2, 3, 7, 8, 13, 16, 17, 31, 48, 65))) for _ in range(2))
        k = int(generator.choice((1, 2, 7, 8, 9, 63, 128, 130, 256, 511, 513, 640)))
        left, right = (str(generator.choice(("rows", "columns", "gaps", "same"))) for _ in range(2))
        found.append(Case(m, n, k, left, right, int(generator.choice((0, 0, 1, 3)))))
    return found


@pytest.fixture
def kernels() -> Iterator[Kernels]:
    found = load()
    if found is None:
        pytest.skip("no C library")
    yield found
    found.select("")
    found.follow_torch()


def variants(kernels: Kernels) -> Iterator[str]:
    """Every instruction set of this machine, on one thread and on two."""
    for isa in INSTRUCTION_SETS:
        if kernels.select(isa):
            for threads in (1, 2):
                kernels.set_threads(threads)
                yield f"{isa} on {threads}"


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal bits, where a NaN is a NaN."""
    integers = torch.int32 if one.dtype == torch.float32 else torch.int64
    both_nan = one.isnan() & other.isnan()
    return one.shape == other.shape and bool(((one.view(integers) == other.view(integers)) | both_nan).all())


def check(kernels: Kernels, case: Case, a: torch.Tensor, b: torch.Tensor) -> None:
    expected = torch.from_numpy(reference(a.numpy(), b.numpy()))
    for variant in variants(kernels):
        assert same_bits(gemm(a, b), expected), (variant, case)


@pytest.mark.parametrize("case", EDGES, ids=str)
def test_edges_have_the_bits_of_the_reference(kernels: Kernels, case: Case) -> None:
    check(kernels, case, *draw_case(case, torch.float32))


def test_random_shapes_have_the_bits_of_the_reference(kernels: Kernels) -> None:
    for seed, case in enumerate(random_cases(60)):
        check(kernels, case, *draw_case(case, torch.float32, seed))


def test_float64_has_the_bits_of_the_reference(kernels: Kernels) -> None:
    small = [Case(17, 20, 131), Case(9, 5, 140, "rows", "columns"), Case(1, 9, 260, "rows", "columns")]
    small += [Case(9, 1, 260), Case(1, 30, 140), Case(1, 1, 1030), Case(6, 7, 30, "gaps", "columns", 2)]
    for case in small:
        check(kernels, case, *draw_case(case, torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_special_values_have_the_bits_of_the_reference(kernels: Kernels, dtype: torch.dtype) -> None:
    generator = np.random.default_rng(3)
    tiny = float(torch.finfo(dtype).smallest_normal)
    values = [0.0, -0.0, 1.0, -1.5, tiny, -tiny, tiny / 8, float("inf"), -float("inf"), float("nan"), 1e30]
    for case in (Case(15, 35, 40), Case(1, 40, 200, "rows", "columns"), Case(40, 1, 60), Case(1, 1, 1100)):
        for chosen in (values[:7], values):  # with infinities nearly all outputs are NaN
            a, b = (
                torch.from_numpy(generator.choice(chosen, shape)).to(dtype)
                for shape in ((case.m, case.k), (case.k, case.n))
            )
            check(kernels, case, a, b)


def test_an_underflow_in_the_first_block_is_no_negative_zero(kernels: Kernels) -> None:
    a = torch.full((3, 1), 1e-30)
    expected = torch.zeros(3, 5)
    for variant in variants(kernels):
        assert same_bits(gemm(a, torch.full((1, 5), -1e-30)), expected), variant


def test_large_products_are_the_same_on_all_variants(kernels: Kernels) -> None:
    """Beyond one block of packed rows and columns; the scalar kernels stand for the reference."""
    for case in (Case(150, 560, 520), Case(500, 65, 600, "columns", "columns")):
        a, b = draw_case(case, torch.float32)
        kernels.select("scalar")
        expected = gemm(a, b)
        for variant in variants(kernels):
            assert same_bits(gemm(a, b), expected), (variant, case)


def test_what_is_added_and_scaled(kernels: Kernels) -> None:
    case = Case(33, 41, 150)
    a, b = draw_case(case, torch.float32)
    product = torch.from_numpy(reference(a.numpy(), b.numpy()))
    selves = [
        torch.randn(41),
        torch.randn(33, 1),
        torch.randn(33, 41),
        torch.randn(41, 33).t(),
        torch.randn(()),
    ]
    for variant in variants(kernels):
        for own in selves:
            for beta, alpha in ((1, 1), (0.3, 1), (1, 0.7), (0.3, 0.7)):
                scaled = product if alpha == 1 else product * alpha
                expected = scaled + (own if beta == 1 else own * beta)
                assert same_bits(gemm(a, b, own, beta, alpha), expected), (variant, own.shape, beta, alpha)
        assert same_bits(gemm(a, b, None, 1, 0.7), product * 0.7), variant
        vector, added = a[:, :1], torch.randn(33, 1)
        by_vector = torch.from_numpy(reference(a.t().numpy(), vector.numpy())) + 2 * torch.ones(150, 1)
        assert same_bits(gemm(a.t(), vector, torch.ones(1), 2), by_vector), variant
        assert same_bits(gemm(a, b[:, :1], added), product[:, :1] + added), variant


def test_a_row_alone_is_the_row_among_others(kernels: Kernels) -> None:
    for case in (Case(64, 100, 700, "rows", "columns"), Case(64, 10, 300), Case(64, 1, 1300)):
        a, b = draw_case(case, torch.float32)
        for variant in variants(kernels):
            together = gemm(a, b)
            for row in (0, 13, 63):
                assert same_bits(gemm(a[row : row + 1], b), together[row : row + 1]), (variant, case)


def test_negated_views(kernels: Kernels) -> None:
    a, b = draw_case(Case(4, 5, 6), torch.float32)
    lazy = torch._neg_view(a)
    assert lazy.is_neg()
    assert same_bits(gemm(lazy, b), gemm(-a, b))


def test_threads_follow_torch(kernels: Kernels) -> None:
    asked = []

    def wanted() -> int:
        asked.append(1)
        return 2

    kernels.follow(wanted)
    gemm(torch.ones(2, 2), torch.ones(2, 2))
    assert asked


@pytest.mark.parametrize("k", [64, 512, 4096, 32768])
def test_errors_are_no_larger_than_those_of_torch(k: int) -> None:
    generator = np.random.default_rng(11)
    a, b = (torch.from_numpy(generator.standard_normal(shape)).float() for shape in ((64, k), (k, 64)))
    exact = a.double() @ b.double()

    def error(product: torch.Tensor) -> float:
        return float((product.double() - exact).abs().mean() / exact.abs().mean())

    assert error(gemm(a, b)) <= 1.05 * error(a @ b)
