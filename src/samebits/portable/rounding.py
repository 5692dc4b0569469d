"""float16 and bfloat16: computed in float32 and rounded once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.registry import LOW_PRECISION, Handler, is_rounding_itself

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def rounding_once(handler: Handler, *, in_place: bool = False) -> Handler:
    """The handler for float16 and bfloat16 arguments, or for a result that is asked for in one of them.

    Results have the dtype that torch's promotion gives, or that of the argument `dtype`.

    Args:
        handler: computes in float32 and float64.
        in_place: it writes over its first argument, and gives that.
    """
    if is_rounding_itself(handler):
        return handler
    if in_place:
        return _rounding_in_place(handler)

    @functools.wraps(handler)
    def handle(*args: Any, **kwargs: Any) -> Any:
        asked = kwargs.get("dtype")
        target = asked or _promoted([*_floats((args, *kwargs.values()))])
        if asked in LOW_PRECISION:  # torch converts what goes in to that dtype first
            args = _mapped(args, lambda tensor: tensor.to(asked) if tensor.is_floating_point() else tensor)
            kwargs = {**kwargs, "dtype": torch.float32}
        up = {name: _mapped(value, _raised) for name, value in kwargs.items()}
        out = handler(*_mapped(args, _raised), **up)
        if target not in LOW_PRECISION:
            return out
        return _mapped(out, lambda tensor: tensor.to(target) if tensor.dtype == torch.float32 else tensor)

    return handle


def as_dtype(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`x.to(dtype)`, which takes a microsecond even where there is nothing to do."""
    return x if x.dtype == dtype else x.to(dtype)


def _rounding_in_place(handler: Handler) -> Handler:
    @functools.wraps(handler)
    def handle(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        up = {name: _mapped(value, _raised) for name, value in kwargs.items()}
        out = handler(_raised(self), *_mapped(args, _raised), **up)
        return self if out is self else self.copy_(out)

    return handle


def _raised(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float32) if tensor.dtype in LOW_PRECISION else tensor


def _promoted(tensors: list[torch.Tensor]) -> torch.dtype | None:
    """What torch's promotion gives: tensors without dimensions do not count beside others."""
    counting = [tensor for tensor in tensors if tensor.dim()] or tensors
    dtypes = [tensor.dtype for tensor in counting]
    return functools.reduce(torch.promote_types, dtypes) if dtypes else None


def _floats(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _floats(item)


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        return type(value)(_mapped(item, change) for item in value)
    return value
