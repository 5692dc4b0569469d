"""Higher-order ops, such as `flex_attention` and `torch.cond`: they call functions, and consist of other ops.

Uncompiled, torch runs one by its kernel for `CompositeExplicitAutograd` (`torch/_higher_order_ops`, 2.6.0 to
2.15.0). A dispatch mode of ours gets it as one call.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

from samebits._torch.unseen import foreign_modes

_KEY: Any = torch._C.DispatchKey.CompositeExplicitAutograd
# Their kernels are made of ops, and take a mode. What they call is called inside these.
_OF_OPS = frozenset(("flex_attention", "flex_attention_backward"))
_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial, torch.nn.Module)


def is_higher_order(op: Any) -> bool:
    """Tell whether a dispatch mode was called for a higher-order op."""
    return isinstance(op, torch._ops.HigherOrderOperator)


def run_by_its_ops(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
    """Run a higher-order op so that a dispatch mode sees the ops that it consists of.

    Where other modes, or the class of a tensor, may have a rule for the op itself, it is theirs.

    Args:
        op: the higher-order op.
        args: its positional arguments.
        kwargs: its keyword arguments.
        mode: the mode that was called; it is not entered while it runs.
    """
    if foreign_modes()() or _have_own_dispatch((*args, *kwargs.values())):
        return op(*args, **kwargs)
    kernel = getattr(op, "py_kernels", {}).get(_KEY)
    if kernel is not None and str(op) in _OF_OPS:
        with mode:
            return kernel(*args, **kwargs)
    # The kernels of the others refuse to run in a mode, and most of their ops are in what they call.
    watched = [_watched(value, mode) for value in args]
    return op(*watched, **{name: _watched(value, mode) for name, value in kwargs.items()})


def _watched(value: Any, mode: Any) -> Any:
    if not isinstance(value, _FUNCTIONS):
        return value

    @functools.wraps(value)
    def call(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return value(*args, **kwargs)

    return call


def _have_own_dispatch(values: tuple[Any, ...] | list[Any]) -> bool:
    for value in values:
        if isinstance(value, (list, tuple)):
            if _have_own_dispatch(value):
                return True
        elif isinstance(value, torch.Tensor) and torch._C._dispatch_keys(value).has("Python"):
            return True
    return False
