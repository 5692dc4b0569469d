"""The scalar mathematics of portable mode on a CUDA device: the CPU's bits, from the same headers."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.gpu

BENCH = Path(__file__).resolve().parents[2] / "bench" / "gpu"
VALUES = 1 << 18
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(scope="module")
def scalar_math():
    """The program that compares the functions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        torch.cuda.init()
        torch.cuda.device_count()  # torch keeps it from now on, which is no test's doing
        yield importlib.import_module("scalar_math")


def differing(cases):
    """Describe the functions whose values have other bits; some functions were compared."""
    found = list(cases)
    assert len(found) > 6
    return [
        f"{name}: {compared.mismatches}, {example}"
        for name, compared, example in found
        if compared.mismatches
    ]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["unary", "binary", "activation"])
def test_functions_have_the_bits_of_the_cpu(scalar_math, kind, dtype):
    """Every function, for special values, random bits, and numbers of many sizes."""
    assert differing(getattr(scalar_math, f"{kind}_cases")(dtype, VALUES)) == []


def test_random_values_have_the_bits_of_the_cpu(scalar_math):
    """The words of Philox, and the distributions that are made of them."""
    assert differing(scalar_math.random_cases(VALUES)) == []


def test_a_difference_of_one_bit_is_counted(scalar_math):
    """The comparison can fail: one unit in the last place, the sign of a zero; but not another NaN."""
    expected = torch.tensor([1.0, 0.0, torch.nan, 2.0])
    result = torch.tensor([1.0 + 2**-23, -0.0, torch.nan, 2.0]).cuda()
    result.view(torch.int32)[2] ^= 1

    assert scalar_math.compare(result, expected) == (2, 1, 0)
