"""The dispatch mode: every op below autograd goes to a portable kernel, to torch if proven exact, or is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from samebits.errors import SamebitsError
from samebits.portable.exact import EXACT, MOVES
from samebits.portable.foreach import derive
from samebits.portable.ops import contractions, distributions, optimizers, random, roots
from samebits.portable.registry import LOW_PRECISION, Handler, merge, resolve

_FAMILIES = (contractions, distributions, optimizers, random, roots)


@functools.cache
def _handlers() -> dict[Any, Handler]:
    """What stands for each op; made at the first use, when torch is there."""
    table = merge(family.table() for family in _FAMILIES)
    found = resolve({name: _with_upcast(handler) for name, handler in table.items()})
    return {**derive(_of_one_tensor), **found}


def _of_one_tensor(op: Any) -> Handler:
    """What a `_foreach_` op does with each tensor."""
    handler: Handler | None = _handlers().get(op)
    return handler or (op if _is_exact(op) else functools.partial(_refuse, op))


class PortableMode(TorchDispatchMode):
    """Gives every op its portable values while it is entered; refuses those that have none."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called by torch for each op."""
        kwargs = kwargs or {}
        handler = _handlers().get(func)
        if handler is not None:
            return handler(*args, **kwargs)
        if _is_exact(func):
            return func(*args, **kwargs)
        if func._can_decompose():
            with self:
                return func.decompose(*args, **kwargs)
        return _refuse(func)


def _is_exact(op: Any) -> bool:
    name = op._schema.name.partition("::")[2]
    return name in MOVES or name in EXACT


def _refuse(op: Any, *_: Any, **__: Any) -> Any:
    raise SamebitsError(
        f"{op} has no portable kernel and is not known to be exact: use another op there, or run without portable mode",
        slug="portable-op",
    )


def _with_upcast(handler: Handler) -> Handler:
    """float16 and bfloat16 inputs are computed in float32 and rounded once."""
    if getattr(handler, "keeps_dtypes", False):
        return handler

    @functools.wraps(handler)
    def handle(*args: Any, **kwargs: Any) -> Any:
        low = _lowest(args)
        if low is None:
            return handler(*args, **kwargs)
        up = _mapped(args, lambda tensor: tensor.float() if tensor.dtype in LOW_PRECISION else tensor)
        return _mapped(handler(*up, **kwargs), lambda out: out.to(low) if out.dtype == torch.float32 else out)

    return handle


def _lowest(args: tuple[Any, ...]) -> torch.dtype | None:
    for value in args:
        if isinstance(value, torch.Tensor) and value.dtype in LOW_PRECISION:
            return value.dtype
    return None


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_mapped(item, change) for item in value)
    return value
