"""What is done with a call that has a sparse tensor among its arguments."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.arguments import check
from samebits.portable.exact.names import SPARSE
from samebits.portable.exact.standing import base_name
from samebits.portable.handling import KEPT, computed, traced
from samebits.portable.ops import sparse
from samebits.portable.refusals import refuse_sparse
from samebits.portable.registry import resolve
from samebits.portable.scan import signature
from samebits.torch_private_portable import tracer

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable.registry import Handler


@functools.cache
def sparse_handlers() -> dict[Any, Handler]:
    """What stands for each op when one of its tensors is sparse."""
    return resolve(sparse.table())


@functools.cache
def sparse_plan(op: Any) -> Callable[..., Any]:
    """What is done when this op is called with a COO, CSR or CSC tensor.

    Args:
        op: an `OpOverload`, or a higher-order op.
    """
    is_torchs = getattr(op, "namespace", "") == "aten"
    if is_torchs and base_name(op) in SPARSE:
        return lambda args, kwargs, mode: op(*args, **kwargs)  # noqa: ARG005 - of every plan
    handler = sparse_handlers().get(op) if is_torchs else None
    known: set[tuple[Any, ...]] = set()

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        tracing = tracer()
        if tracing is not None:
            return traced(tracing, op, (args, kwargs), mode)
        if is_torchs and not has_floats((*args, *kwargs.values())):
            return op(*args, **kwargs)
        if handler is None:
            raise refuse_sparse(op)
        like = (*signature(args), *kwargs, *signature(kwargs.values()))
        if like not in known:
            check(op, args, kwargs)
            if len(known) >= KEPT:
                known.clear()
            known.add(like)
        return computed(op, handler, args, kwargs)

    return run


def has_floats(values: Any) -> bool:
    """Whether a float or complex tensor, dtype or a Python float is among the arguments, lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.dtype.is_floating_point or value.dtype.is_complex:
                return True
        elif isinstance(value, tuple | list):
            if has_floats(value):
                return True
        elif isinstance(value, torch.dtype):
            if value.is_floating_point or value.is_complex:
                return True
        elif isinstance(value, float):
            return True
    return False
