"""Matrix products on a CUDA device in the order of the portable numerics: the bits of the CPU."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

from samebits.portable.kernels.contractions import gemm

pytestmark = pytest.mark.gpu

BENCH = Path(__file__).resolve().parents[2] / "bench" / "gpu"
LAYOUTS = ["nn", "tn", "nt", "tt"]


@pytest.fixture(scope="module")
def products():
    """The program that measures the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        patch.setenv(
            "FAKE_GPU_UNCHECKED", "1"
        )  # what is multiplied here takes minutes on a device that is not there
        torch.cuda.init()
        torch.cuda.device_count()  # torch keeps it from now on, which is no test's doing
        yield importlib.import_module("products")


def wrong_shapes(products, kernel, layout, shares=(1,)):
    """Return sizes for which some outputs have other bits than the CPU's."""
    wrong = []
    for m, n, k in products.SHAPES:
        a, b = products.operands(m, n, k, layout)
        one, other, expected = products.on_device(a), products.on_device(b), gemm(a, b)
        if any(products.other_bits(kernel.multiply(one, other, each), expected) for each in shares):
            wrong.append((m, n, k))
    return wrong


def test_tiles_have_the_bits_of_the_cpu(products):
    """Totals in shared memory and in registers, whole tiles and odd sizes, one block of k and many."""
    built, failed = products.build_all([(variant, products.ROWS) for variant in products.LARGE])
    wrong = {key[0].name: wrong_shapes(products, kernel, products.ROWS) for key, kernel in built.items()}

    assert failed == {}
    assert wrong == {variant.name: [] for variant in products.LARGE}


@pytest.mark.parametrize("name", LAYOUTS)
def test_transposed_operands(products, name):
    """Each operand contiguous along k or across it."""
    layout = products.LAYOUTS[name]

    assert wrong_shapes(products, products.Gemm(products.LARGE[0], layout), layout) == []


def test_shares_of_k_do_not_show(products):
    """However many thread blocks share the blocks of k of one output."""
    kernel = products.Gemm(products.SPLIT[2])

    assert wrong_shapes(products, kernel, products.ROWS, (1, 2, 3, 100)) == []


def test_views_that_are_not_aligned(products):
    """Rows that do not begin at multiples of 16 bytes."""
    a, b = products.operands(300, 333, 700, products.ROWS)
    one, other = products.on_device(a)[1:299, 3:], products.on_device(b)[:697, 5:]
    expected = gemm(a[1:299, 3:], b[:697, 5:])
    result = products.Gemm(products.LARGE[0]).multiply(one, other)

    assert products.other_bits(result, expected) == 0


def test_another_order_has_other_bits(products):
    """The comparison can fail: cuBLAS adds in another order."""
    a, b = products.operands(512, 512, 4096, products.ROWS)

    assert products.other_bits(a.cuda() @ b.cuda(), gemm(a, b)) > 0
