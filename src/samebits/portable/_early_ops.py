"""Ops that compute, or may compute, in code that torch runs before it asks portable mode, in either way.

That code takes an op apart (a composition in C++), or adds it to the autograd graph. What torch itself has
there calls other ops, which come to portable mode one by one, but for the few that are named here. What
libraries have there nobody knows: `m.def("f", &f)` in C++ makes a composition of any function.
"""

from __future__ import annotations

import functools

from samebits._torch.dispatch_key import ops_that_run_first
from samebits._torch.portable import names_tensors, op_named
from samebits.portable._collectives import NAMESPACES
from samebits.portable._exact import base_of

_CALL_OTHERS = NAMESPACES | {"_c10d_functional_autograd", "prims", "profiler"}
"""Namespaces of torch whose code does nothing there but call other ops, as that of aten."""

# They compute in 8-bit integers or float16, or choose a scale for that. FBGEMM, which most of them call, has
# other bits on other instruction sets.
_PREFIXES = ("fbgemm_", "quantized_", "_wrapped_")
_NAMES = frozenset({"_choose_qparams_per_tensor", "_saturate_weight_to_fp16", "choose_qparams_optimized"})


def early_ops() -> frozenset[str]:
    """Return these ops, also those of libraries that were loaded late."""
    return frozenset(name for name in ops_that_run_first() if is_early(name))


@functools.cache
def is_early(name: str) -> bool:
    """Tell whether such code of this op, if it has any, computes by itself.

    Args:
        name: such as `aten::fbgemm_linear_quantize_weight`.
    """
    namespace = name.partition("::")[0]
    if namespace == "aten":
        return computes_by_itself(base_of(name))
    return namespace not in _CALL_OTHERS and names_tensors(op_named(name))


def computes_by_itself(base: str) -> bool:
    """Tell whether a composition of aten calls no other op for what it computes.

    Args:
        base: the name of the op, such as `fbgemm_linear_quantize_weight`.
    """
    return base.startswith(_PREFIXES) or base in _NAMES
