"""Attention: the fused kernel against the path of single ops, bit for bit, and against torch."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from samebits.portable._dispatch import PortableMode
from samebits.portable.backends.library import load

sdpa = torch.nn.functional.scaled_dot_product_attention


def _inputs(dtype, queries=150, keys=301, heads=4, kv_heads=4, size=8):
    generator = torch.Generator().manual_seed(3)
    shapes = [(2, heads, queries, size), (2, kv_heads, keys, size), (2, kv_heads, keys, size)]
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def _mask(kind, dtype):
    generator = torch.Generator().manual_seed(4)
    mask = torch.rand(2, 1, 150, 301, generator=generator) > 0.4
    mask[1, 0, 7] = False
    return mask if kind == "bool" else torch.where(mask, 0.25, -torch.inf).to(dtype)


CASES = {
    "plain": lambda dtype: (_inputs(dtype), {}),
    "causal": lambda dtype: (_inputs(dtype), {"is_causal": True}),
    "more queries": lambda dtype: (_inputs(dtype, 301, 150), {"is_causal": True}),
    "bool mask": lambda dtype: (_inputs(dtype), {"attn_mask": _mask("bool", dtype)}),
    "float mask": lambda dtype: (_inputs(dtype), {"attn_mask": _mask("float", dtype)}),
    "scale": lambda dtype: (_inputs(dtype), {"scale": -0.3}),
    "groups": lambda dtype: (_inputs(dtype, kv_heads=2), {"enable_gqa": True}),
}


def _run(inputs, named):
    out = sdpa(*inputs, **named)
    seed = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(out.dtype).reshape(out.shape)
    return [out.detach(), *torch.autograd.grad(out, inputs, seed)]


def _run_portable(inputs, named):
    out = sdpa(*inputs, **named)
    return [out, *torch.autograd.grad(out, inputs, SEEDS[out.dtype, out.shape])]


SEEDS: dict = {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_both_paths_have_the_same_bits_and_agree_with_torch(case, dtype):
    inputs, named = CASES[case](dtype)
    plain = _run(inputs, named)
    shape = plain[0].shape
    seed = torch.linspace(-1, 1, plain[0].numel(), dtype=torch.float64).to(dtype).reshape(shape)
    SEEDS[dtype, shape] = seed
    with PortableMode():
        fused = _run_portable(inputs, named)
        with sdpa_kernel(SDPBackend.MATH):
            composed = _run_portable(inputs, named)
        with torch.inference_mode():
            inferred = sdpa(*inputs, **named)
    assert torch.equal(inferred, fused[0])
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    for one, other, of_torch in zip(fused, composed, plain, strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(one, of_torch, rtol=tolerance, atol=tolerance)


def test_instruction_sets_and_threads_give_the_same_bits():
    kernels = load()
    if kernels is None:
        pytest.skip("no C kernels here")
    inputs, named = CASES["causal"](torch.float32)
    SEEDS[torch.float32, inputs[0].shape] = torch.ones_like(inputs[0]) / 3
    found = []
    try:
        for isa in ("scalar", "avx2", "avx512", "neon"):
            for threads in (1, 2):
                if kernels.select(isa):
                    kernels.set_threads(threads)
                    with PortableMode():
                        found.append(_run_portable(inputs, named))
    finally:
        kernels.select("")
        kernels.set_threads(1)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("rows", [3, 40])
def test_a_gradient_without_memory_of_its_own(rows):
    """`out.sum().backward()` gives one number, expanded: it was read from memory that was free again."""
    query, key, value = (torch.randn(1, 2, rows, 4) for _ in range(3))
    found = []
    for gradient in (torch.ones(()).expand(1, 2, rows, 4), torch.ones(1, 2, rows, 4)):
        leaves = [x.clone().requires_grad_() for x in (query, key, value)]
        with PortableMode():
            torch.nn.functional.scaled_dot_product_attention(*leaves).backward(gradient)
        found.append([leaf.grad for leaf in leaves])

    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 2, 3), (2, 1, 0, 3)])
def test_the_result_can_be_viewed_where_torchs_can(order):
    shape = (2, 3, 5, 4)
    heads = torch.randn([shape[dim] for dim in order]).permute([order.index(dim) for dim in range(4)])
    plain = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
    with PortableMode():
        ours = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
    assert ours.stride() == plain.stride()
    torch.testing.assert_close(ours, plain)
