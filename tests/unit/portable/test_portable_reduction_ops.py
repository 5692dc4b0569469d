"""Handlers of reductions, order, softmax and normalisation against plain torch."""

from __future__ import annotations

import math
from typing import Any

import opinfo
import pytest
import torch

from samebits.portable._dispatch import PortableMode

OPS = """
sum mean nansum var std var_mean std_mean prod norm linalg.vector_norm dist renorm trace cumsum cumprod
logcumsumexp logsumexp softmax log_softmax masked.softmax amax amin aminmax argmax argmin sort topk kthvalue
median nanmedian mode msort cummax cummin nn.functional.layer_norm native_layer_norm
nn.functional.group_norm nn.functional.batch_norm native_batch_norm nn.functional.instance_norm
nn.functional.rms_norm corrcoef nn.functional.normalize count_nonzero cumulative_trapezoid diff
"""
VARIANTS = [(name, "") for name in OPS.split()] + [
    ("max", "reduction_no_dim"),
    ("max", "reduction_with_dim"),
    ("min", "reduction_no_dim"),
    ("min", "reduction_with_dim"),
    ("norm", "inf"),
    ("softmax", "with_dtype"),
    ("log_softmax", "with_dtype"),
]


def one_value_rows(sample: Any) -> bool:
    """Layers over one value, whose gradient is 0 in exact arithmetic and rounding errors elsewhere."""
    shapes = [arg for arg in sample.args if isinstance(arg, tuple)]
    return bool(shapes) and math.prod(shapes[0]) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_values_and_gradients_are_those_of_torch(name: str, variant: str, dtype: torch.dtype) -> None:
    skip = one_value_rows if "layer_norm" in name else None
    assert opinfo.check_op(name, dtype, variant=variant, limit=10, skip=skip)


def test_ties_go_to_the_first() -> None:
    x = torch.tensor([[2.0, 1.0, 2.0, 1.0], [0.0, -0.0, 0.0, -0.0]])
    with PortableMode():
        assert x.max(1).indices.tolist() == [0, 0]
        assert x.argmin(1).tolist() == [1, 0]
        assert x.topk(2, 1).indices.tolist() == [[0, 2], [0, 1]]
        assert x.sort(1, descending=True).indices.tolist() == [[0, 2, 1, 3], [0, 1, 2, 3]]
        assert x.median(1).indices.tolist() == [3, 1]
        assert not x.amin(1).signbit().any()


def test_nan_in_the_middle() -> None:
    x = torch.tensor([[1.0, math.nan, 3.0], [3.0, 1.0, 2.0]])
    with PortableMode():
        assert x.median(1).indices.tolist() == [1, 2]
        assert x.nanmedian(1).values.tolist() == [1.0, 2.0]
        assert x.kthvalue(2, 1).values.tolist() == [3.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_rounded_once(dtype: torch.dtype) -> None:
    x = torch.randn(5, 33, generator=torch.Generator().manual_seed(1)).to(dtype)
    with PortableMode():
        assert torch.equal(x.sum(1), x.float().sum(1).to(dtype))
        assert x.sum(dtype=torch.float32).dtype == torch.float32
        assert torch.equal(x.sum(dtype=torch.float32), x.float().sum())
        assert torch.equal(torch.softmax(x, 1), torch.softmax(x.float(), 1).to(dtype))
        assert torch.equal(torch.softmax(x, 1, dtype=torch.float32), torch.softmax(x.float(), 1))


@pytest.mark.parametrize("mixed", [False, True])
def test_bfloat16_layers_have_torchs_dtypes(mixed: bool) -> None:  # noqa: FBT001
    x = torch.randn(4, 6, 5, 5).bfloat16()
    of_x = torch.randn(6).to(torch.float32 if mixed else torch.bfloat16)
    flat = x.view(-1, 6)
    calls = (
        lambda: torch.native_layer_norm(flat, [6], of_x, of_x, 1e-5),
        lambda: torch.native_group_norm(x, of_x, of_x, 4, 6, 25, 3, 1e-5),
        lambda: torch.native_batch_norm(x, of_x, of_x, of_x.clone(), of_x.clone().abs(), True, 0.1, 1e-5),
    )
    for call in calls:
        plain = call()
        with PortableMode():
            ours = call()
        for one, other in zip(ours, plain, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)


def test_running_statistics_are_updated() -> None:
    x = torch.randn(8, 6, 3, 3)
    for momentum in (0.1, None):
        plain, ours = (torch.nn.BatchNorm2d(6, momentum=momentum) for _ in range(2))
        for _ in range(2):
            plain(x)
            with PortableMode():
                ours(x)
        torch.testing.assert_close(ours.running_mean, plain.running_mean)
        torch.testing.assert_close(ours.running_var, plain.running_var)


@pytest.mark.parametrize("training", [True, False])
def test_channels_last_is_kept(training: bool) -> None:  # noqa: FBT001
    x = torch.randn(4, 6, 5, 5)
    found = []
    for form in (torch.contiguous_format, torch.channels_last):
        layer = torch.nn.BatchNorm2d(6).train(training)
        leaf = x.clone().contiguous(memory_format=form).requires_grad_()
        with PortableMode():
            out = layer(leaf)
            (out * out.detach()).sum().backward()
        assert out.is_contiguous(memory_format=form)
        found.append((out.detach(), layer.weight.grad))
    if not training:
        assert torch.equal(found[0][0], found[1][0])


def test_a_row_is_the_same_alone_and_among_others() -> None:
    x = torch.randn(64, 100, generator=torch.Generator().manual_seed(2))
    layer = torch.nn.LayerNorm(100)
    with PortableMode(), torch.inference_mode():
        for function in (layer, lambda v: torch.softmax(v, 1), lambda v: v.logsumexp(1), lambda v: v.var(1)):
            whole = function(x)
            assert all(torch.equal(function(x[i : i + 1])[0], whole[i]) for i in range(0, 64, 7))


def test_parameter_norms_in_a_list() -> None:
    tensors = [torch.randn(3, 4), torch.randn(0), torch.randn(7)]
    with PortableMode():
        norms = torch._foreach_norm(tensors)
    torch.testing.assert_close(norms, tuple(torch._foreach_norm(tensors)))


def test_weight_norm_layer() -> None:
    v, g = torch.randn(4, 6, dtype=torch.float64), torch.randn(4, 1, dtype=torch.float64)
    grads = []
    for mode in (False, True):
        leaves = [v.clone().requires_grad_(), g.clone().requires_grad_()]
        if mode:
            with PortableMode():
                (torch._weight_norm(*leaves, 0) * v).sum().backward()
        else:
            (torch._weight_norm(*leaves, 0) * v).sum().backward()
        grads.append([leaf.grad for leaf in leaves])
    torch.testing.assert_close(grads[1], grads[0])
