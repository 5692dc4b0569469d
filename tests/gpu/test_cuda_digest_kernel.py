"""The digest's kernels on a CUDA device: the CPU's values, for any tensors, launched without waiting."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

from samebits.digest import digest_many

pytestmark = pytest.mark.gpu

BENCH = Path(__file__).resolve().parents[2] / "bench" / "gpu"
VARIANTS = ["digest_1x1", "digest_1x2", "digest_2x1", "digest_2x2"]


@pytest.fixture(scope="module")
def digests():
    """The program that measures the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        torch.cuda.init()
        torch.cuda.device_count()  # torch keeps it from now on, which is no test's doing
        yield importlib.import_module("digests")


@pytest.fixture(scope="module")
def kernels(digests):
    """The compiled kernels."""
    return digests.kernels()


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_dtypes(digests, kernels, variant):
    """Random bits of every dtype that torch can make."""
    on_cpu, on_device = zip(*digests.of_all_dtypes(0), strict=True)

    assert len(on_cpu) > 15
    assert digests.digest_on_device(kernels, on_device, variant) == digest_many(list(on_cpu))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("offset", [0, 1, 4, 7, 8, 12])
def test_all_lengths_and_starts(digests, kernels, variant, offset):
    """Lengths around words, stripes, blocks and units, wherever the contents begin."""
    on_cpu = digests.of_all_sizes()
    on_device = [digests.at_offset(tensor, offset) for tensor in on_cpu]

    assert digests.digest_on_device(kernels, on_device, variant) == digest_many(on_cpu)


def test_the_grid_does_not_show(digests, kernels):
    """As many thread blocks as may be, and many times, give one value."""
    tensor = torch.randint(0, 256, (50_000_001,), dtype=torch.uint8)
    on_device = tensor.cuda()
    found = set()
    for blocks in (1, 3, 8, 16, 16, 16):
        plan = digests.Plan(kernels, [on_device], "digest_1x1", blocks)
        plan.launch()
        found.add(plan.result())

    assert found == {digest_many([tensor])}


def test_a_launch_does_not_wait(digests, kernels):
    """Work on the device is not waited for before the result is asked for, and the result is of that time."""
    tensor = torch.zeros(1 << 20, device="cuda")
    plan = digests.Plan(kernels, [tensor])
    plan.result()
    torch.cuda._sleep(200_000_000)
    tensor.fill_(3)
    plan.launch()
    is_running = not torch.cuda.current_stream().query()

    assert is_running
    assert plan.result() == digest_many([torch.full((1 << 20,), 3.0)])
