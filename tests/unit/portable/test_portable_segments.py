"""Histograms, reductions of segments and fake quantization in portable mode, against plain torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opinfo import check_op

from samebits.errors import SamebitsError
from samebits.portable._dispatch import PortableMode

BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def close(ours, plain):
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6, equal_nan=True)


@BOTH
@pytest.mark.parametrize("name", ["histogram", "histogramdd"])
def test_histograms(name, dtype):
    check_op(name, dtype, limit=40)


def test_weights_are_added_in_the_order_of_elements():
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.rand(500, generator=generator), torch.randn(500, generator=generator)
    with PortableMode():
        found, edges = torch.histogram(x, 3, range=(0.0, 0.9), weight=weight)
    sums = np.zeros(3, np.float32)
    for value, more in zip(x.tolist(), weight.numpy(), strict=True):
        if value <= edges[-1]:
            sums[min(2, int(np.searchsorted(edges.numpy(), value, side="right")) - 1)] += more
    assert found.numpy().tobytes() == sums.tobytes()


def test_the_last_edge_belongs_to_the_last_bin_and_nan_to_none():
    x = torch.tensor([0.0, 1.0, 2.0, 3.0, float("nan"), -0.1, 3.1])
    with PortableMode():
        found, edges = torch.histogram(x, torch.tensor([0.0, 1.0, 3.0]), density=True)
    assert edges.tolist() == [0, 1, 3]
    assert found.tolist() == [0.25, 0.375]


@BOTH
@pytest.mark.parametrize("variant", ["lengths", "offsets"])
def test_segments(variant, dtype):
    check_op("_segment_reduce", dtype, variant=variant, limit=60)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 2.0])
def test_segments_with_zeros_equals_and_nothing(reduce, initial):
    rows = [[1.0, 0.0], [1.0, 3.0], [0.0, 0.0], [2.0, -1.0], [2.0, 5.0], [2.0, 5.0]]
    plain, ours = (torch.tensor(rows, requires_grad=True) for _ in range(2))
    lengths = torch.tensor([2, 0, 3, 1])
    wanted = torch.segment_reduce(plain, reduce, lengths=lengths, initial=initial)
    with PortableMode():
        found = torch.segment_reduce(ours, reduce, lengths=lengths, initial=initial)
        found.nan_to_num().sum().backward()
    wanted.nan_to_num().sum().backward()
    close(found, wanted)
    close(ours.grad, plain.grad)


def test_elements_of_a_segment_are_added_in_ascending_order():
    data = torch.randn(300, generator=torch.Generator().manual_seed(0))
    with PortableMode():
        found = torch.segment_reduce(data, "sum", offsets=torch.tensor([0, 200, 300]))
    sums = [np.float32(0), np.float32(0)]
    for i, value in enumerate(data.numpy()):
        sums[i >= 200] += value
    assert found.numpy().tobytes() == np.array(sums).tobytes()


def elements(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(dtype) * 4


def gradients(function, *inputs):
    """What a function gives, and the gradients of its inputs, plain and portable."""
    results = []
    for portable in (False, True):
        own = [one.clone().requires_grad_(one.is_floating_point()) for one in inputs]
        if portable:
            with PortableMode():
                out = function(*own)
                (out * torch.arange(out.numel()).reshape(out.shape)).sum().backward()
        else:
            out = function(*own)
            (out * torch.arange(out.numel()).reshape(out.shape)).sum().backward()
        results.append([out.detach(), *[one.grad for one in own if one.grad is not None]])
    return results


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_fake_quantization(dtype):
    x, quantize = elements(6, 5, dtype=dtype), torch.fake_quantize_per_tensor_affine
    scales, zeros = torch.rand(5) + 0.05, torch.tensor([0, 3, -2, 1, 0], dtype=torch.int32)
    for function in (
        lambda x: quantize(x, 0.1, 3, -20, 20),
        lambda x: quantize(x, torch.tensor([0.13]), torch.tensor([-3], dtype=torch.int32), -20, 20),
        lambda x: torch.fake_quantize_per_channel_affine(x, scales, zeros, 1, -15, 16),
        lambda x: torch.fake_quantize_per_channel_affine(x, scales, zeros.float() + 0.25, 1, -15, 16),
    ):
        plain, ours = gradients(function, x)
        for one, other in zip(plain, ours, strict=True):
            torch.testing.assert_close(other, one)


def test_learned_scales_of_fake_quantization():
    x, scales, zeros = elements(6, 5), torch.rand(5) + 0.05, torch.tensor([0.0, 3.4, -2.5, 1.0, 40.0])
    per_tensor = torch._fake_quantize_learnable_per_tensor_affine
    per_channel = torch._fake_quantize_learnable_per_channel_affine
    for function, inputs in (
        (lambda *own: per_tensor(*own, -12, 12, 0.3), (x, scales[:1], zeros[1:2])),
        (lambda *own: per_channel(*own, 1, -12, 12, 0.3), (x, scales, zeros)),
    ):
        plain, ours = gradients(function, *inputs)
        assert len(ours) == 4
        for one, other in zip(plain, ours, strict=True):
            close(other, one)


def test_what_cannot_be_quantized_is_at_the_end_of_the_range():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30])
    with PortableMode():
        found = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -8, 7)
    assert found.tolist() == [-4, 3.5, -4, 3.5]


@pytest.mark.parametrize("function", [torch.linalg.eig, torch.linalg.eigvals])
def test_eigenvalues_of_any_matrix_are_refused_with_their_reason(function):
    with PortableMode(), pytest.raises(SamebitsError, match="no specification fixes") as refused:
        function(torch.eye(3))
    assert refused.value.slug == "portable-op"
    assert "torch.linalg.eigh takes symmetric matrices" in str(refused.value)
