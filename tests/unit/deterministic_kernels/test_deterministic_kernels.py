"""Deterministic kernels beside torch's own, on the CPU, where torch's are deterministic too.

The kernels stand in front of those of the CPU. Each case calls a public function of torch, forwards and
backwards, with and without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from kernel_support import CASES, CLOSE, made, results
from torch.nn import functional

from samebits._torch.kernel_overrides import can_override
from samebits.causes.catalogue import specification_of
from samebits.causes.specification import Cause
from samebits.deterministic_kernels.all_kernels import KERNELS
from samebits.deterministic_kernels.registration import overrides_for

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not can_override(), reason="this torch gives no kernels to come in front of")


class Counting:
    """Kernels that count how often each computed."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.kernels = {name: self._counted(name, kernel) for name, kernel in KERNELS.items()}

    def _counted(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            result = kernel(*args, **kwargs)
            self.calls[name] = self.calls.get(name, 0) + 1
            return result

        return run


@pytest.fixture(scope="module")
def registered():
    """Our kernels in front of those of the CPU."""
    counting = Counting()
    with overrides_for("CPU", counting.kernels).held():
        yield counting


@pytest.fixture
def ours(registered):
    """The same, with deterministic algorithms on and nothing counted."""
    registered.calls.clear()
    torch.use_deterministic_algorithms(True)
    try:
        yield registered
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_gives_what_torch_gives(name, ours):
    case = CASES[name]
    for dtype in case.dtypes:
        found = results(case, dtype)
        torch.use_deterministic_algorithms(False)
        wanted = results(case, dtype)
        torch.use_deterministic_algorithms(True)
        assert set(case.kernels) <= set(ours.calls), (ours.calls, "another kernel computed it")
        ours.calls.clear()
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            close = {"rtol": CLOSE.get(dtype, 0), "atol": CLOSE.get(dtype, 0), "equal_nan": True}
            torch.testing.assert_close(one, other, **close)


def test_each_kernel_has_a_case():
    missing = set(KERNELS) - {name for case in CASES.values() for name in case.kernels}
    # cuDNN's has no kernel on the CPU; the others are forms of one that has a case.
    assert missing == {
        "cudnn_grid_sampler_backward",
        "adaptive_avg_pool3d_backward",
        "_ctc_loss_backward.Tensor",
    }


def test_lengths_of_ctc_may_be_lists(ours):
    scores, targets = torch.randn(7, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 0]])
    lists = ([7, 5], [2, 1])
    loss, alpha = torch.ops.aten._ctc_loss(scores, targets, *lists)
    rest = torch.ones(2), scores, targets
    found = torch.ops.aten._ctc_loss_backward(*rest, *lists, loss, alpha, 0)
    tensors = map(torch.tensor, lists)
    wanted = torch.ops.aten._ctc_loss_backward(*rest, *tensors, loss, alpha, 0)
    assert ours.calls == {"_ctc_loss_backward": 1, "_ctc_loss_backward.Tensor": 1}
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.float16])
def test_the_first_of_equal_values_is_chosen(dtype, ours):
    x = torch.tensor([[2, 1, 2, 1, 1], [0, 0, 0, 0, 0]], dtype=dtype)
    assert torch.median(x, 1).indices.tolist() == [4, 2]  # in the order 1 3 4 0 2, and 0 1 2 3 4
    assert torch.kthvalue(x, 2, 1).indices.tolist() == [3, 1]
    assert torch.kthvalue(x, 5, 1, keepdim=True).values.tolist() == [[2], [0]]
    assert torch.median(torch.tensor(3, dtype=dtype), 0) == (3, 0)


def test_medians_of_nans(ours):
    nan = float("nan")
    x = torch.tensor([[1.0, nan, 3.0, nan], [4.0, 3.0, 2.0, 1.0], [nan, nan, nan, nan]])
    median, known = torch.median(x, 1), torch.nanmedian(x, 1)
    assert median.indices.tolist() == [1, 2, 0]
    assert str(median.values.tolist()) == "[nan, 2.0, nan]"
    assert known.indices.tolist() == [0, 2, 0]
    assert str(known.values.tolist()) == "[1.0, 2.0, nan]"


def test_the_last_of_several_values_for_one_place_stays(ours):
    values = torch.arange(1.0, 7.0)
    assert torch.zeros(3).put_(torch.tensor([0, 1, 0, 1, 0, -3]), values).tolist() == [6, 4, 0]
    places = torch.tensor([[[0, 3, 3, 0]]])
    assert functional.max_unpool1d(values[None, None, :4], places, 1).tolist() == [[[4, 0, 0, 3]]]


def test_infinite_gradients_stay_where_they_belong(ours):
    """A scaler of losses looks for them, and must find the others finite."""
    x = torch.ones(1, 1, 6, requires_grad=True)
    functional.interpolate(x, 9, mode="linear").mul(torch.tensor([0.0] * 8 + [torch.inf])).sum().backward()
    assert x.grad[..., :4].isfinite().all()
    assert x.grad[..., 5].isinf().all()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if torch.float64 in case.dtypes])
def test_gradients_are_those_of_the_function(name, ours):
    """Beside differences of the function itself, which torch computes; and equal bits, twice."""
    case = CASES[name]
    inputs = made(case, torch.float64)
    result = case.function(*inputs)
    if not isinstance(result, torch.Tensor) or not result.requires_grad or not result.isfinite().all():
        pytest.skip("it has no gradient, or is infinite")
    assert torch.autograd.gradcheck(case.function, inputs, nondet_tol=0.0, fast_mode=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.zeros(4, 5).index_reduce(0, torch.tensor([9]), torch.ones(1, 5), "prod"), "out of"),
        (
            lambda: torch.zeros(4, 5).index_reduce(0, torch.tensor([1]), torch.ones(1, 4), "prod"),
            "source tensor shape",
        ),
        (
            lambda: torch.zeros(4).scatter(0, torch.tensor([7]), torch.ones(1), reduce="multiply"),
            "out of bounds",
        ),
        (lambda: torch.zeros(4).put_(torch.tensor([4]), torch.ones(1)), "out of bounds"),
        (lambda: torch.zeros(4).put_(torch.tensor([0]), torch.ones(2)), "found 1 of torch.int64, and 2"),
        (lambda: functional.max_unpool2d(torch.ones(1, 1, 2, 2), torch.full((1, 1, 2, 2), 99), 2), "out of"),
        (lambda: torch.histc(torch.ones(3), 0), "bins"),
        (lambda: torch.histc(torch.tensor([1.0, torch.inf])), "not finite"),
        (lambda: torch.bincount(torch.tensor([-1]), torch.ones(1)), "non-negative"),
        (lambda: torch.bincount(torch.tensor([1]), torch.ones(2)), "same length"),
        (lambda: torch.kthvalue(torch.ones(3), 4), "selected number k out of range"),
        (lambda: functional.nll_loss(torch.zeros(1, 2, 1, 1), torch.full((1, 1, 1), 5)), "out of bounds"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_so(call, message, ours):
    with pytest.raises((RuntimeError, IndexError), match=message):
        call()


def test_without_deterministic_algorithms_torchs_own_kernels_compute(ours):
    torch.use_deterministic_algorithms(False)
    torch.histc(torch.ones(3))
    assert ours.calls == {}


def test_the_advice_about_an_op_knows_of_its_kernel():
    """But for ops that torch's own functions, or other arguments, make deterministic as well."""
    known = specification_of(Cause.NONDETERMINISTIC_KERNEL)
    texts = {name: known.advice_for(f"aten::{name}").text for name in KERNELS}
    told = {name for name, text in texts.items() if "under control" in text}
    assert set(KERNELS) - told == {
        *(f"upsample_{mode}_backward" for mode in ("bilinear2d", "trilinear3d", "bicubic2d")),
        *("scatter_reduce.two", "put_", "_embedding_bag_dense_backward"),
    }


@pytest.mark.parametrize(
    "call",
    [
        lambda: functional.max_unpool2d(torch.zeros(0, 3, 2, 2), torch.zeros(0, 3, 2, 2).long(), 2),
        lambda: torch.zeros(0).put_(torch.tensor([], dtype=torch.int64), torch.ones(0)),
        lambda: torch.tensor([1e-30, 0]).scatter_reduce(
            0, torch.tensor([0, 0, 1, 1]), torch.full((4,), 1e20), "prod"
        ),
        lambda: (
            torch.tensor([1e-3, 0])
            .half()
            .index_reduce(0, torch.tensor([0, 0, 1, 1]), torch.full((4,), 300.0).half(), "prod")
        ),
        lambda: torch.kthvalue(torch.tensor(3.0), 1, 0, keepdim=True).values,
        lambda: torch.kthvalue(torch.tensor([[3.0]]), 1, 0, keepdim=True).indices,
    ],
)
def test_edges_are_those_of_torch(call, ours):
    found = call()
    torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(found, call(), rtol=1e-3, atol=0)


def test_one_scale_may_stand_for_the_first_dimension(ours):
    x = torch.randn(1, 1, 3, 3, requires_grad=True)
    torch.ops.aten.upsample_bilinear2d(x, [4, 6], False, 2.0).sum().backward()
    assert ours.calls == {"upsample_bilinear2d_backward": 1}
    torch.testing.assert_close(x.grad.sum(), torch.tensor(24.0))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_what_is_outside_or_nowhere_gives_nothing_back(mode, ours):
    x = torch.ones(1, 1, 3, 3, requires_grad=True)
    grid = torch.tensor([[[[0.0, 0.0], [9.0, 9.0], [torch.nan, 0.0]]]], requires_grad=True)
    weights = torch.tensor([1.0, torch.inf, torch.inf])
    out = functional.grid_sample(x, grid, mode=mode, align_corners=False)
    torch.autograd.backward(out, weights.expand_as(out))
    assert x.grad.isfinite().all()
    assert grid.grad.isfinite().all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.adaptive_avg_pool2d(x, 3),
        lambda x: functional.adaptive_max_pool2d(x, 3),
        lambda x: functional.pad(x, (1, 1, 1, 1), mode="replicate"),
        lambda x: functional.grid_sample(x, torch.zeros(2, 3, 3, 2), align_corners=False),
    ],
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_gradients_lie_in_memory_as_torchs_do(function, layout, ours):
    """What comes before takes views of them."""
    strides = []
    for ours_compute in (True, False):
        torch.use_deterministic_algorithms(ours_compute)
        x = torch.randn(2, 3, 5, 6).to(memory_format=layout).requires_grad_()
        out = function(x)
        seen = []
        x.register_hook(lambda grad, seen=seen: seen.append(grad.stride()))
        out.backward(torch.ones_like(out))
        strides.append(seen[0])
    assert strides[0] == strides[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.zeros(4).put_(torch.tensor([-7]), torch.ones(1)), "out of bounds"),
        (lambda: torch.zeros(1).expand(4).put_(torch.tensor([2]), torch.ones(1)), "stands for several"),
        (lambda: torch.zeros(0).put_(torch.tensor([0]), torch.ones(1)), "without elements"),
        (lambda: torch.ones(2, 3).index_reduce(2, torch.tensor([1]), torch.ones(1, 3), "prod"), "[Dd]im"),
        (
            lambda: torch.ones(2).scatter(0, torch.tensor([1]), torch.ones(1), reduce="least"),
            "add or multiply",
        ),
        (lambda: torch.histc(torch.ones(3), 2, out=torch.zeros(2, dtype=torch.int64)), "dtype"),
        (lambda: torch.median(torch.ones(2, 0), 1), "reduction dim|found none"),
    ],
)
def test_what_torch_does_not_take_is_not_taken(call, message, ours):
    with pytest.raises((RuntimeError, IndexError), match=message):
        call()


def test_our_own_mistakes_are_not_hidden_where_torch_would_only_warn(ours):
    def fails(*_, **__):
        raise RuntimeError("a mistake")

    torch.use_deterministic_algorithms(True, warn_only=True)
    with overrides_for("CPU", {"histc": fails}).held(), pytest.raises(RuntimeError, match="a mistake"):
        torch.histc(torch.ones(3))
