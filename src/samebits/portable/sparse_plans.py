"""What is done with a call that has a sparse tensor among its arguments."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.arguments import checked
from samebits.portable.exact.names import SPARSE
from samebits.portable.exact.standing import base_name
from samebits.portable.ops import sparse
from samebits.portable.refusals import refuse_sparse
from samebits.portable.registry import resolve

if TYPE_CHECKING:
    from samebits.portable.plans import Plan
    from samebits.portable.registry import Handler


@functools.cache
def sparse_handlers() -> dict[Any, Handler]:
    """What stands for each op when one of its tensors is sparse."""
    return resolve(sparse.table())


@functools.cache
def sparse_plan(op: Any) -> Plan:
    """What is done when this op is called with a COO, CSR or CSC tensor.

    Args:
        op: an `OpOverload`, or a higher-order op.
    """
    is_torchs = getattr(op, "namespace", "") == "aten"
    if is_torchs and base_name(op) in SPARSE:
        return lambda args, kwargs: op(*args, **kwargs)
    handler = sparse_handlers().get(op) if is_torchs else None
    rest = None if handler is None else checked(op, handler)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_torchs and not _has_floats((*args, *kwargs.values())):
            return op(*args, **kwargs)
        if rest is None:
            raise refuse_sparse(op)
        return rest(*args, **kwargs)

    return run


def _has_floats(values: Any) -> bool:
    for value in values:
        if isinstance(value, tuple | list):
            found = _has_floats(value)
        elif isinstance(value, torch.Tensor):
            found = value.dtype.is_floating_point
        else:
            found = isinstance(value, float) or (isinstance(value, torch.dtype) and value.is_floating_point)
        if found:
            return True
    return False
