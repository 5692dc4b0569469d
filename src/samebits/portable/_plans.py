"""The plan of each op: what runs when it is called in portable mode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame
from samebits._torch import own_ops
from samebits._torch.portable import can_decompose, function_of, name_of, parts_of
from samebits.portable import ops
from samebits.portable._collectives import NAMESPACES, collective_plan
from samebits.portable._complex import complex_plan
from samebits.portable._early_ops import early_ops, is_early
from samebits.portable._exact import Condition, exactness_of
from samebits.portable._handling import (
    bits_of,
    decomposed,
    for_each,
    handled,
    has_float_number,
    single_op,
)
from samebits.portable._refusals import refuse_op, refuse_tensor
from samebits.portable._registry import (
    Handlers,
    declared_by,
    is_in_place,
    rounding_once,
    without_out,
    writing,
)
from samebits.portable._scan import (
    FLOATS,
    VIRTUAL,
    ComplexError,
    FakeTensorError,
    SparseError,
    ZeroTensorError,
    has_complex,
    quick_scan,
    with_zeros,
)
from samebits.portable._sparse import sparse_plan
from samebits.portable._whole_ops import whole_ops
from samebits.portable.lstm_ops import lstm_ops

if TYPE_CHECKING:
    from types import FrameType

Plan = Callable[[tuple[Any, ...], dict[str, Any], Any], Any]
"""A function of the arguments, those by name, and what to enter around the parts of composite ops."""

Families = tuple[Any, ...]
_PASSING_NAMESPACES = frozenset({"profiler"})
_PASSING_OPS = frozenset(  # of `fully_shard`: they copy into and out of the buffers that are sent
    f"fsdp.{name}.default"
    for name in ("all_gather_copy_in", "chunk_cat", "chunk_cat_mixed_dtype", "split_with_sizes_copy")
)


@functools.cache
def handlers(families: Families) -> Handlers:
    """Return the handlers for float32 and float64.

    Args:
        families: modules of handlers.
    """
    return Handlers(declared_by(families))


@functools.cache
def low_handlers(families: Families) -> Handlers:
    """Return the handlers for calls with float16 or bfloat16 among the dtypes.

    Args:
        families: modules of handlers.
    """
    return Handlers(
        declared_by(families), lambda handler, name: rounding_once(handler, in_place=is_in_place(name))
    )


def plan_of(op: Any, families: Families) -> Plan:
    """Return the function that runs when this op is called.

    Args:
        op: an `OpOverload`, or a higher-order op.
        families: modules of handlers.
    """
    if getattr(op, "namespace", "") != "aten":
        return _plan_elsewhere(op)
    name = name_of(op)
    if is_early(name):
        return _refused(op)
    whole = whole_ops().get(name.removeprefix("aten::"))
    return _plan_in_aten(op, families) if whole is None else _whole(op, whole)


def _plan_elsewhere(op: Any) -> Plan:
    namespace = getattr(op, "namespace", "")
    if namespace in _PASSING_NAMESPACES or str(op) in _PASSING_OPS:
        return _passed_on(op)
    if namespace in NAMESPACES:
        return collective_plan(op)
    if namespace == own_ops.NAMESPACE:
        return _own(op)
    return decomposed(op) if can_decompose(op) and not _is_of_library(op) else _refused(op)


def _plan_in_aten(op: Any, families: Families) -> Plan:
    exactness = exactness_of(op)
    handler, low = handlers(families).get(op), low_handlers(families).get(op)
    single = None if handler is not None else single_op(op)
    if single is not None:
        return _for_each(op, _or_complex(single, plan_of(single, families)))
    if handler is None and exactness.floats and exactness.condition is None:
        return _passed(op)
    if handler is not None and low is not None:
        rest = handled(op, handler, low, integers=exactness.integers)
    else:
        rest = decomposed(op) if can_decompose(op) else _written_or_refused(op, families)
        if exactness.integers:
            rest = _integers_passed(op, rest)
    if exactness.floats and exactness.condition is not None:
        rest = _passed_if(op, exactness.condition, rest)
    return rest


def _is_of_library(op: Any) -> bool:
    """Tell whether its composition is of C++, and may compute by itself."""
    return name_of(op) in early_ops()


def _whole(op: Any, compute: Callable[..., Any]) -> Plan:
    parts = parts_of(op)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        with mode:
            return compute(lambda: parts(*args, **kwargs), *args, **kwargs)

    return run


def _own(op: Any) -> Plan:
    compute = lstm_ops().kernel_of(op)
    return lambda args, kwargs, mode: compute(*args, **kwargs)  # noqa: ARG005 - of every plan


def _passed_on(op: Any) -> Plan:
    return lambda args, kwargs, mode: op(*args, **kwargs)  # noqa: ARG005 - of every plan


def _for_each(op: Any, plan: Plan) -> Plan:
    repeat = for_each(op)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        return repeat(lambda *given, **named: plan(given, named, mode), args, kwargs)

    return run


def _or_complex(op: Any, plan: Plan) -> Plan:
    """Return the plan for any arguments of an op, from that for arguments that are not complex."""

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        try:
            return plan(args, kwargs, mode)
        except ComplexError:
            return complex_plan(op)(args, kwargs, mode)

    return run


def _passed(op: Any) -> Plan:
    call = function_of(op)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:  # noqa: ARG001 - of every plan
        if kwargs or quick_scan(args) < 0:
            bits_of(op, args, kwargs)  # refuses arguments without portable values
        return call(*args, **kwargs)

    return run


def _passed_if(op: Any, condition: Condition, rest: Plan) -> Plan:
    passed = _passed(op)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        return passed(args, kwargs, mode) if condition(args, kwargs) else rest(args, kwargs, mode)

    return run


def _integers_passed(op: Any, rest: Plan) -> Plan:
    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        if bits_of(op, args, kwargs) & FLOATS or has_float_number(args, kwargs):
            return rest(args, kwargs, mode)
        return op(*args, **kwargs)

    return run


def _torch_is_imported() -> bool:
    """Tell whether the body of a module of torch is running: it computes tables for torch's own use.

    torch 2.8 tries every operator of tensors when `torch._dynamo`, which an optimizer imports, is imported
    (torch/_dynamo/variables/torch_function.py).
    """
    frame: FrameType | None = calling_frame()
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name == "<module>" and name.startswith("torch."):
            return True
        frame = frame.f_back
    return False


def _written_or_refused(op: Any, families: Families) -> Plan:
    """Return the plan of an op with `out`: it writes there what the same op without `out` returns."""
    base = without_out(op)
    if base is None:
        return _refused(op)
    plan = _or_complex(base, plan_of(base, families))

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        return writing(lambda *given, **named: plan(given, named, mode), op, base)(*args, **kwargs)

    return run


def _refused(op: Any) -> Plan:
    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:  # noqa: ARG001 - of every plan
        if bits_of(op, args, kwargs) & VIRTUAL or _torch_is_imported():
            return op(*args, **kwargs)
        raise refuse_op(op)

    return run


class Plans:
    """The plans of the ops that were called so far, each made at its first call."""

    def __init__(self) -> None:
        self._plans: dict[int, Plan] = {}  # by id, because the hash of an OpOverload is Python code
        self._planned: list[Any] = []  # the ops, which keep their ids

    def run(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], again: Any) -> Any:
        """Run an op by its plan.

        Args:
            op: an `OpOverload`, or a higher-order op.
            args: its arguments.
            kwargs: those by name.
            again: the context to enter around the parts of composite ops.
        """
        plan = self._plans.get(id(op)) or self._plan(op)
        try:
            return plan(args, kwargs, again)
        except FakeTensorError:
            return op(*args, **kwargs)
        except SparseError:
            if has_complex((*args, *kwargs.values())):
                raise refuse_tensor(op, "complex numbers in or beside a sparse tensor") from None
            return sparse_plan(op)(args, kwargs, again)
        except ZeroTensorError:
            named = {name: with_zeros(value) for name, value in kwargs.items()}
            return plan(with_zeros(args), named, again)

    def _plan(self, op: Any) -> Plan:
        plan = self._plans[id(op)] = _or_complex(op, plan_of(op, ops.families()))
        self._planned.append(op)
        return plan
