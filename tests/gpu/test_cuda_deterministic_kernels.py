"""Deterministic kernels on a CUDA device: control computes what torch refuses there, the same each time."""

from __future__ import annotations

import pytest
import torch
from control_support import quiet
from kernel_support import CASES, CLOSE, results

pytestmark = pytest.mark.gpu
TIMES = 5


@pytest.fixture(autouse=True)
def controlled():
    """Control of each test."""
    torch.cuda.init()
    with quiet(seed=3):
        yield


@pytest.mark.parametrize("name", CASES)
def test_control_computes_it_as_the_cpu_does(name):
    case = CASES[name]
    for dtype in case.dtypes:
        found, wanted = results(case, dtype, "cuda"), results(case, dtype)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            close = {"rtol": 3 * CLOSE.get(dtype, 0), "atol": 3 * CLOSE.get(dtype, 0), "equal_nan": True}
            torch.testing.assert_close(one, other, **close)
        for _ in range(TIMES):
            again = results(case, dtype, "cuda")
            assert all(map(torch.equal, *(map(torch.nan_to_num, each) for each in (found, again))))


def test_a_median_does_not_wait_for_the_host():
    """So it can be captured in a graph, as all that does not depend on values."""
    x = torch.randn(50, 60, device="cuda")
    torch.median(x, 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values, _ = torch.median(x, 1)
    graph.replay()
    assert torch.equal(values, torch.median(x, 1).values)
