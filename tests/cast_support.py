"""What autocast makes of the arguments of an op, seen below it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.kernel_overrides import KernelOverrides, op_named
from samebits.portable._devices import tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterator

LOW, FULL, DOUBLE, WHOLE, OTHER = torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.float16
GIVEN = {
    "low": (LOW, LOW),
    "full": (FULL, FULL),
    "low, full": (LOW, FULL),
    "full, low": (FULL, LOW),
    "double": (DOUBLE, DOUBLE),
    "double, low": (DOUBLE, LOW),
    "whole": (WHOLE, WHOLE),
    "whole, full": (WHOLE, FULL),
    "other, full": (OTHER, FULL),
    "full, other": (FULL, OTHER),
}
"""Dtypes that the first, second, first … tensor of a call gets."""


class SeenError(BaseException):
    """A call came to where torch adds it to the autograd graph: what it brought."""


@contextlib.contextmanager
def seen_below(names: frozenset[str], device: str) -> Iterator[None]:
    """Have the ops raise `SeenError` instead of computing on that device."""

    def see(_: Any, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        tensors = [each.dtype for each in tensors_in(given)]
        raise SeenError(tensors, [each for each in given if isinstance(each, torch.dtype)])

    key = {"cpu": "AutogradCPU", "cuda": "AutogradCUDA"}[device]
    with KernelOverrides(dict.fromkeys(names, see), key).held():
        yield


def converted(name: str, dtypes: tuple[torch.dtype, ...], device: str) -> Any:
    """The dtypes that an op gets under autocast to `LOW`, and its arguments that are dtypes; or the error."""
    op = op_named(name)
    places = [each for each in op._schema.arguments if not each.is_out]
    turns = iter(range(100))

    def tensor() -> torch.Tensor:
        return torch.ones(2, 2, dtype=dtypes[next(turns) % len(dtypes)], device=device)

    def value(kind: str) -> Any:
        if kind in {"Tensor", "Optional[Tensor]"}:
            return tensor()
        if kind == "List[Tensor]":
            return [tensor(), tensor()]
        plain = {"int": 1, "number": 1, "float": 0.5, "bool": False, "str": "mean", "List[int]": [1, 1]}
        return plain.get(kind)

    args = [value(str(each.type)) for each in places if not each.kwarg_only]
    try:
        with torch.autocast(device, dtype=LOW):
            op(*args)
    except SeenError as seen:
        return seen.args
    except RuntimeError as error:
        return type(error)
    return None
