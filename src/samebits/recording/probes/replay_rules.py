"""Which ops can be executed again, and why the others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.torch_schema import OpTraits

VIEW = "view"
UNINITIALIZED = "uninitialised memory"
NO_RESULT = "no tensor result"
PROFILER = "range of the profiler"
SIDE_EFFECT = "side effect outside tensors"
COMPILED = "operator that runs other operators"
OBJECT = "an argument that is no plain value"
SUBCLASS = "tensor without memory of its own"
CAPTURING = "CUDA graph capture"
GENERATOR = "generator that cannot be put back"
UNDECLARED = "writes to an argument without saying so"
UNREADABLE = "result that cannot be read"
FAILED = "error when executed again"

BUILT_IN = frozenset(
    (
        "aten",
        "prims",
        "quantized",
        "_quantized",
        "sparse",
        "mkldnn",
        "onednn",
        "mkldnn_prepacked",
        "prepacked",
    )
)
"""Namespaces of torch itself, whose ops do what their schemas say, and draw from torch's generators only."""

# They mark what the profiler shows.
_PROFILER_NAMESPACES = frozenset(("profiler", "record_function"))
# They talk to other processes, or to streams, or check something.
_EFFECT_NAMESPACES = frozenset(
    (
        "c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "_dtensor", "symm_mem",
        "rpc", "prim", "debugprims", "streams",
    )
)  # fmt: skip
# They change what a tensor's memory is, read files, or keep something (aten/src/ATen/native, 2.13.0).
_EFFECTS = frozenset(
    f"aten::{name}"
    for name in (
        "set_", "set_data", "record_stream", "from_file", "resize_as_sparse_",
        "sparse_resize_", "sparse_resize_and_clear_", "_cudnn_rnn_flatten_weight",
        "_pin_memory", "pin_memory", "_assert_async", "_functional_assert_async", "_assert_scalar",
        "_print",
    )
)  # fmt: skip
# What they return holds whatever was in that memory.
_UNINITIALIZED = frozenset(
    f"aten::{name}"
    for name in (
        "empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted",
        "empty_quantized", "_empty_affine_quantized", "_empty_per_channel_affine_quantized",
        "_nested_from_padded_tensor", "resize_", "resize_as_", "_resize_output_",
        "resize", "_resize_output",
    )
)  # fmt: skip


def reason_to_skip(traits: OpTraits) -> str:
    """Why an op is never executed again; empty when it is."""
    silent = traits.has_schema and not traits.returns_tensors and not traits.writes
    reasons = (
        (not traits.has_schema, COMPILED),
        (traits.namespace in _PROFILER_NAMESPACES, PROFILER),
        (traits.namespace in _EFFECT_NAMESPACES or traits.base in _EFFECTS, SIDE_EFFECT),
        (traits.base in _UNINITIALIZED, UNINITIALIZED),
        (traits.is_view, VIEW),
        (silent, SIDE_EFFECT if is_foreign(traits) else NO_RESULT),
        (traits.takes_objects and is_foreign(traits), OBJECT),
    )
    return next((reason for holds, reason in reasons if holds), "")


def is_foreign(traits: OpTraits) -> bool:
    """Whether an op is not torch's own: it may use any generator, and may not do what its schema says."""
    return traits.namespace not in BUILT_IN
