"""The kernel of attention that torch chose, as its autograd graph and its compiler tell it.

`F.scaled_dot_product_attention` chooses one of several ops by device, dtype, shapes and switches, and says
nowhere which. An op that has a formula for its gradient leaves a node of its own in the graph, whose class
torch names after it (`tools/autograd/load_derivatives.py`). Names are those of 2.13.0 and 2.15.0; a new op
has its name from the same rule. A node is there only if the op ran with gradients.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MATH = "_scaled_dot_product_attention_math"
FLEX = "flex_attention"

# Only the math kernel calls it (aten/src/ATen/native/transformers/attention.cpp, since 2.5).
_OF_MATH = "SafeSoftmaxBackward0"
_NODE = re.compile(r"(\w*Attention\w*?)Backward\d+")  # torch's own; those of Python functions have no number
_OF_FLEX = "torch._higher_order_ops.flex_attention"
_WORD = re.compile(r"(?<!^)(?=[A-Z])")
# Ops whose names torch shortens where a `Forward` comes before `Backward`.
_FORWARDS = frozenset(("_flash_attention", "_efficient_attention", "_cudnn_attention"))
# In code that inductor wrote: calls of ops, and its own kernels, named after what they compute.
_CALL = re.compile(r"\btorch\.ops\.aten\.(_(?:\w+_)?attention\w*?)(?:_backward)?\.")
_KERNEL = re.compile(r"\b(?:cpp|triton)_\w*(?:flex_attention|flex_decoding)")


def attention_nodes(kinds: Iterable[type]) -> set[str]:
    """Return the names of the ops of attention that have a node in an autograd graph.

    Args:
        kinds: the classes of its nodes.
    """
    return set(filter(None, map(_op_of, kinds)))


def attention_in_code(code: str) -> set[str]:
    """Return the names of the ops of attention that generated code calls or has kernels for.

    Args:
        code: of a graph, without comments.
    """
    return {*_CALL.findall(code), *([FLEX] if _KERNEL.search(code) else ())}


def _op_of(kind: type) -> str:
    name = kind.__name__
    if name == _OF_MATH:
        return MATH
    function = vars(kind).get("_forward_cls")  # of a function that is written in Python
    if function is not None:
        return FLEX if getattr(function, "__module__", "") == _OF_FLEX else ""
    found = _NODE.fullmatch(name)
    if found is None:
        return ""
    op = f"_{_WORD.sub('_', found.group(1)).lower()}"
    return f"{op}_forward" if op in _FORWARDS else op
