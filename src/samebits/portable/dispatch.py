"""The dispatch mode: every op goes to a portable kernel, to torch if proven exact, or is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.ops import families
from samebits.portable.plans import plan_of, sparse_plan
from samebits.portable.scan import SparseError
from samebits.torch_private import dispatch_mode_class
from samebits.torch_private_portable import is_faking

if TYPE_CHECKING:
    from samebits.portable.plans import Plan


_PLAIN = (torch.Tensor,)


class PortableMode(dispatch_mode_class()):  # type: ignore[misc]
    """Gives every op its portable values while it is entered; refuses those that have none."""

    supports_higher_order_operators = True  # to be refused by name

    def __init__(self) -> None:
        super().__init__()
        self._plans: dict[int, Plan] = {}  # by id, because the hash of an OpOverload is Python code
        self._planned: list[Any] = []  # the ops, which keep their ids

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True wraps each call to keep the compiler out, which costs time; nothing compiles here.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called by torch for each op."""
        if types and types != _PLAIN and _have_own_dispatch(types):
            if _have_no_contents(types):
                return func(*args, **(kwargs or {}))
            return NotImplemented  # such a class says which ops it consists of
        plan = self._plans.get(id(func)) or self._plan(func)
        try:
            return plan(args, kwargs or {}, self)
        except SparseError:
            return sparse_plan(func)(args, kwargs or {}, self)

    def _plan(self, func: Any) -> Plan:
        plan = self._plans[id(func)] = plan_of(func, families())
        self._planned.append(func)
        return plan


def _have_no_contents(types: Any) -> bool:
    """Whether they are fake tensors, or wrap such, as others do while torch exports."""
    return any(kind.__name__ == "FakeTensor" for kind in types) or is_faking()


def _have_own_dispatch(types: Any) -> bool:
    """False for `torch.Tensor`, which torch names when autograd saves what an op has just given."""
    return any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types)
