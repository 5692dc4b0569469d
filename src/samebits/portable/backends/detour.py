"""What a GPU has no kernels for: what they read goes to the CPU, and their results come back.

So every kernel has the CPU's bits, and takes as long as the way there and back. backends/cuda.py has kernels
that run on the GPU, and leaves the rest to this.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from samebits.portable._devices import mapped

if TYPE_CHECKING:
    from collections.abc import Callable

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
