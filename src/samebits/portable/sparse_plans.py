"""What is done with a call that has a sparse tensor among its arguments."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits.errors import SamebitsError
from samebits.portable.arguments import check, raise_as_torch
from samebits.portable.audit import InexactOpError
from samebits.portable.exact.names import SPARSE
from samebits.portable.exact.standing import base_name
from samebits.portable.ops import sparse
from samebits.portable.refusals import refuse_sparse
from samebits.portable.registry import resolve
from samebits.portable.scan import signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable.registry import Handler


_KEPT = 512  # signatures that are remembered of one op


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
        return lambda args, kwargs: op(*args, **kwargs)
    handler = sparse_handlers().get(op) if is_torchs else None
    known: set[tuple[Any, ...]] = set()

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if is_torchs and not _has_floats((*args, *kwargs.values())):
            return op(*args, **kwargs)
        if handler is None:
            raise refuse_sparse(op)
        like = (*signature(args), *kwargs, *signature(kwargs.values()))
        if like not in known:
            check(op, args, kwargs)
            if len(known) >= _KEPT:
                known.clear()
            known.add(like)
        return _computed(op, handler, args, kwargs)

    return run


def _computed(op: Any, handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return handler(*args, **kwargs)
    except (SamebitsError, InexactOpError):
        raise
    except Exception as error:  # noqa: BLE001 - one of its mistakes is no error of the script
        raise_as_torch(op, args, kwargs, error)


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
