"""Control registers deterministic kernels, and takes them out again."""

from __future__ import annotations

import pytest
import torch
from control_support import quiet, run

from samebits._torch.cuda_start import when_cuda_starts
from samebits._torch.kernel_overrides import can_override

pytestmark = pytest.mark.skipif(not can_override(), reason="this torch gives no kernels to come in front of")


def put() -> list[float]:
    return torch.zeros(3).put_(torch.tensor([0, 0, 2]), torch.tensor([1.0, 2.0, 3.0])).tolist()


def unpooled() -> torch.Tensor:
    values, places = torch.nn.functional.max_pool2d(torch.randn(1, 1, 4, 4), 2, return_indices=True)
    return torch.nn.functional.max_unpool2d(values, places, 2)


def refused() -> bool:
    """Whether torch refuses what has no deterministic kernel, while its deterministic algorithms are on."""
    torch.use_deterministic_algorithms(True)
    try:
        put()
    except RuntimeError as error:
        return "does not have a deterministic implementation" in str(error)
    finally:
        torch.use_deterministic_algorithms(False)
    return False


@pytest.mark.parametrize("how", ["on", "warn"])
def test_control_computes_what_torch_refuses(how, recwarn):
    with quiet(seed=3, switches={"deterministic-algorithms": how}):
        assert put() == [2, 0, 3]
        assert unpooled().count_nonzero() == 4
    assert not [warning for warning in recwarn if "deterministic" in str(warning.message)]
    assert refused()


@pytest.mark.parametrize(
    "switches", [{"deterministic-algorithms": "off"}, {"deterministic-algorithms": "leave"}]
)
def test_control_without_that_switch_registers_nothing(switches):
    with quiet(seed=3, switches=switches):
        assert refused()


def test_an_inner_control_may_end_first():
    with quiet(seed=3):
        with quiet(seed=4):
            assert put() == [2, 0, 3]
        assert put() == [2, 0, 3]
    assert refused()


def test_a_script_under_control_computes_it(tmp_path):
    done = run(
        tmp_path,
        """
        import torch, samebits
        control = samebits.deterministic(seed=3)
        x = torch.randn(1, 1, 4, 4, requires_grad=True)
        y, places = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
        loss = torch.nn.functional.max_unpool2d(y, places, 2).square().sum()
        loss.backward()
        print(x.grad.count_nonzero().item())
        """,
    )
    assert done.stdout.split() == ["4"], done.stderr


def test_what_waits_for_cuda_can_be_withdrawn():
    before = list(torch.cuda._queued_calls)
    calls = []
    withdraw = when_cuda_starts(lambda: calls.append(1))
    assert len(torch.cuda._queued_calls) == len(before) + 1
    withdraw()
    withdraw()
    assert torch.cuda._queued_calls == before
    assert calls == []


def test_nothing_waits_after_control():
    before = list(torch.cuda._queued_calls)
    with quiet(seed=3):
        pass
    assert torch.cuda._queued_calls == before
