"""What a GPU has no kernels for: what they read goes to the CPU, and their results come back.

So every kernel has the CPU's bits, and takes as long as the way there and back. backends/cuda.py has kernels
that run on the GPU, and leaves the rest to this. `on_host` is for functions that are no kernels.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._devices import mapped, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from torch import Tensor

    from samebits.portable.backends.interface import Backend

_WRITTEN = {
    "cholesky": ("out", "info"),
    "lu": ("a", "pivots", "info"),
    "multiply_reflections": ("q",),
    "reflect_columns": ("work", "reflections"),
    "rotate": ("problem", "done"),
    "solve_triangular": ("x",),
}
"""The arguments that the methods which go this way write to, where that is not `out`."""


class Detour:
    """Has the methods of `Backend`, for tensors of any device.

    Args:
        host: computes, in CPU memory.
    """

    def __init__(self, host: Backend) -> None:
        self._host = host

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(_run, getattr(self._host, name), _WRITTEN.get(name, ("out",)))


def _run(method: Callable[..., Any], written: tuple[str, ...], *args: Any, **kwargs: Any) -> Any:
    given = inspect.signature(method).bind(*args, **kwargs).arguments
    copies: dict[int, tuple[Tensor, Tensor]] = {}  # by identity: one that is another argument stays it

    def to_host(tensor: Tensor) -> Tensor:
        if id(tensor) not in copies:
            copies[id(tensor)] = tensor, tensor.cpu()
        return copies[id(tensor)][1]

    result = method(**{name: mapped(value, to_host) for name, value in given.items()})
    for name in written:
        mapped(given[name], lambda tensor: tensor.copy_(copies[id(tensor)][1]))
    return result


def on_host(
    function: Callable[..., Any], places: Collection[int] = (), names: Collection[str] = ()
) -> Callable[..., Any]:
    """Return a function that computes on copies in CPU memory, and brings the results to the device.

    Args:
        function: of tensors of any layout, such as an op of torch.
        places: of the arguments that it writes to.
        names: of those by name.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        tensors = list(tensors_in((args, tuple(kwargs.values()))))
        device = next(each.device for each in tensors if not each.is_cpu)
        given = [mapped(each, lambda tensor: tensor.cpu()) for each in args]
        named = {name: mapped(each, lambda tensor: tensor.cpu()) for name, each in kwargs.items()}
        if named.get("device") is not None:  # where the result is to lie
            device, named["device"] = torch.device(named["device"]), torch.device("cpu")
        result = function(*given, **named)
        written = [(args[at], given[at]) for at in places if at < len(args)]
        written += [(kwargs[name], named[name]) for name in names if name in kwargs]
        for original, copy in written:
            original.copy_(copy)
        originals = {id(copy): original for original, copy in written}
        return mapped(result, lambda tensor: originals.get(id(tensor), tensor.to(device)))

    return run
