"""The plans of ops that get or make COO, CSR or CSC tensors.

torch's own ops of sparse floats are not called, but for those that only move entries (`SPARSE`): the others
add in an order of their own, another one on a GPU. Of whole numbers, torch's ops are called, on the CPU.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.portable import written_arguments
from samebits.portable import ops
from samebits.portable._devices import device_types, placed, tensors_in
from samebits.portable._exact import SPARSE, base_name, is_no_rounding_copy
from samebits.portable._handling import check, chosen_once, refuse_devices
from samebits.portable._refusals import refuse_sparse, refuse_tensor, refuse_use
from samebits.portable._registry import Handlers, declared_sparse
from samebits.portable._scan import first_off_cpu
from samebits.portable.backends.detour import on_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable._registry import Handler

    Plan = Callable[[tuple[Any, ...], dict[str, Any], Any], Any]


@functools.cache
def sparse_handlers() -> Handlers:
    """Return the handlers for calls with a sparse tensor."""
    return Handlers(declared_sparse(ops.families()))


@functools.cache
def sparse_plan(op: Any) -> Plan:
    """Return the function that runs when this op is called with a COO, CSR or CSC tensor.

    Args:
        op: an `OpOverload`, or a higher-order op.
    """
    is_atens = getattr(op, "namespace", "") == "aten"
    if is_atens and base_name(op) in SPARSE:
        return _copied(op) if base_name(op) == "copy" else _passed_on(op)
    handler = sparse_handlers().get(op) if is_atens else None

    def choose(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handler:
        values = (*args, *kwargs.values())
        if any(each.is_meta for each in tensors_in(values)):
            return op  # type: ignore[no-any-return]
        _refuse_other_devices(op, args, kwargs)
        if is_atens and not has_floats(values):
            compute = _of_whole_numbers(op, elsewhere=first_off_cpu(values) is not None)
        elif handler is None:
            raise refuse_sparse(op)
        else:
            check(op, args, kwargs)
            compute = handler
        at_place = placed(op, compute, args, kwargs)
        if at_place is None:
            refuse_devices(op, args, kwargs)
        return at_place

    return chosen_once(op, choose)


def _refuse_other_devices(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for tensor in tensors_in((*args, *kwargs.values())):
        if tensor.device.type not in device_types():
            raise refuse_tensor(op, f"a tensor on {tensor.device}")
    asked = kwargs.get("device")
    if asked is not None and torch.device(asked).type not in device_types():
        raise refuse_tensor(op, f"device={asked}")


def _passed_on(op: Any) -> Plan:
    return lambda args, kwargs, mode: op(*args, **kwargs)  # noqa: ARG005 - of every plan


def _copied(op: Any) -> Plan:
    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:  # noqa: ARG001 - of every plan
        if not is_no_rounding_copy(args, kwargs):
            raise refuse_use("copy_", "of a sparse tensor of floats to integers")
        return op(*args, **kwargs)

    return run


def _of_whole_numbers(op: Any, *, elsewhere: bool) -> Handler:
    """Return torch's own op for tensors of integers and bools; it may make no floats, such as quotients.

    Args:
        op: the `OpOverload`.
        elsewhere: whether some of them lie on a GPU: then it computes on copies in CPU memory.
    """
    compute = on_host(op, *written_arguments(op)) if elsewhere else op

    def run(*args: Any, **kwargs: Any) -> Any:
        result = compute(*args, **kwargs)
        if has_floats([result]):
            raise refuse_sparse(op)
        return result

    return run


def has_floats(values: Any) -> bool:
    """Tell whether floats or complex numbers are among the arguments or their lists, as tensors or dtypes."""
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
