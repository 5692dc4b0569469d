"""The ops of attention that recordings see in autograd graphs and in generated code."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from samebits._torch.attention import FLEX, MATH, attention_in_code, attention_nodes
from samebits.recording.session import record
from samebits.records.reader import RecordReader

FLASH = "_scaled_dot_product_flash_attention_for_cpu"
OVERRIDEABLE = "_scaled_dot_product_fused_attention_overrideable"


def attend(x, kernel=SDPBackend.FLASH_ATTENTION, **options):
    with sdpa_kernel(kernel):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, **options)


def recorded(path):
    with RecordReader(path) as reader:
        return reader.info.environment["torch"]["attention"]


def leaf():
    return torch.ones(1, 2, 8, 4, requires_grad=True)


WORK = {
    "flash": (lambda x: attend(x).sum().backward(), [FLASH]),
    "math": (lambda x: attend(x, SDPBackend.MATH).sum().backward(), [MATH]),
    "both": (lambda x: (attend(x) + attend(x, SDPBackend.MATH)).sum().backward(), [MATH, FLASH]),
    "causal math": (lambda x: attend(x, SDPBackend.MATH, is_causal=True).sum().backward(), [MATH]),
    "gradient": (lambda x: torch.autograd.grad(attend(x).sum(), x), [FLASH]),
    "autocast": (lambda x: autocast(x).sum().backward(), [FLASH]),
    "reentrant": (lambda x: checkpoint(attend, x, use_reentrant=True).sum().backward(), [FLASH]),
    "recomputed": (lambda x: checkpoint(attend, x, use_reentrant=False).sum().backward(), [FLASH]),
    "none": (lambda x: x.softmax(-1).sum().backward(), []),
    "no gradient": (lambda x: (attend(x.detach()).sum() + x.sum()).backward(), []),
}


def autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        return attend(x @ x.transpose(-1, -2))


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("level", ["step", "op"])
def test_a_record_has_the_ops_of_attention_of_backward_passes(tmp_path, work, level):
    function, expected = WORK[work]
    with record(tmp_path / "a.sbr", level=level) as path:
        function(leaf())
    assert recorded(path) == expected


def test_what_is_seen_once_stays_and_a_new_kernel_is_seen_at_a_search(tmp_path):
    """The graph of a module is searched at the passes 1, 2, 3, 4, 8, 16 and so on."""
    layer, x = torch.nn.Linear(4, 4), leaf().detach()
    for number, expected in ((8, [MATH, FLASH]), (6, [FLASH])):
        with record(tmp_path / f"{number}.sbr") as path:
            for i in range(1, 9):
                kernel = SDPBackend.MATH if i == number else SDPBackend.FLASH_ATTENTION
                attend(layer(x), kernel).sum().backward()
        assert recorded(path) == expected


def test_nodes_of_torch_are_named_after_their_ops_and_those_of_others_are_not():
    """A custom function may have any name."""

    class ScaledDotProductFlashAttention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    own = type(ScaledDotProductFlashAttention.apply(torch.ones(1, requires_grad=True)).grad_fn)
    flex = type("FlexAttentionAutogradOp", (), {"__module__": "torch._higher_order_ops.flex_attention"})
    kinds = [own, type("FlexAttentionAutogradOpBackward", (), {"_forward_cls": flex})]
    assert attention_nodes(kinds) == {FLEX}
    names = {
        "ScaledDotProductCudnnAttentionBackward0": "_scaled_dot_product_cudnn_attention",
        "ScaledDotProductEfficientAttentionBackward0": "_scaled_dot_product_efficient_attention",
        "ScaledDotProductFlashAttentionBackward0": "_scaled_dot_product_flash_attention",
        "ScaledDotProductFlashAttentionForCpuBackward0": FLASH,
        "ScaledDotProductFusedAttentionOverrideableBackward0": OVERRIDEABLE,
        "FlashAttentionBackward0": "_flash_attention_forward",
        "EfficientAttentionBackward0": "_efficient_attention_forward",
        "CudnnAttentionBackward0": "_cudnn_attention_forward",
    }
    for node, op in names.items():
        assert attention_nodes([type(node, (), {})]) == {op}
        assert hasattr(torch.ops.aten, op), op


def test_every_node_of_attention_in_this_torch_is_an_op_of_it():
    """A release with a new one has its name by the same rule."""
    functions = torch._C._functions
    nodes = [getattr(functions, name) for name in dir(functions) if "Attention" in name]
    assert nodes
    assert all(hasattr(torch.ops.aten, op) for op in attention_nodes(nodes))
    assert len(attention_nodes(nodes)) == len(nodes)


@pytest.mark.parametrize(
    ("code", "ops"),
    [
        ("buf1 = torch.ops.aten._scaled_dot_product_flash_attention.default(q, k, v)", {FLASH[:35]}),
        ("buf1 = torch.ops.aten._scaled_dot_product_flash_attention_backward.default(q)", {FLASH[:35]}),
        ("b = torch.ops.aten._efficient_attention_forward.default(q)", {"_efficient_attention_forward"}),
        ("triton_tem_fused_flex_attention_5 = async_compile.triton('x', '''", {FLEX}),
        ("cpp_fused__to_copy_flex_attention_ones_1 = async_compile.cpp_pybinding([], '''", {FLEX}),
        ("cpp_fused__scaled_dot_product_flash_attention_0 = async_compile", set()),  # a sum beside it
        ("buf1 = torch.ops.aten._softmax.default(q)", set()),
    ],
)
def test_generated_code_tells_its_ops_of_attention(code, ops):
    assert attention_in_code(code) == ops
