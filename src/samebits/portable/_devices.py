"""The devices that portable mode computes on, and calls whose tensors lie on more than one.

On a GPU of NVIDIA it computes what it computes on the CPU, with the same bits. Which device that is, the
tensors say, as in torch; a number, or a tensor without dimensions in CPU memory, goes to the device of the
others.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.kernel_overrides import CUDA_GRAPH_KEY, GRAPH_KEY, can_override
from samebits._torch.portable import written_arguments
from samebits.portable._exact import base_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from samebits.portable._registry import Handler

CUDA = "cuda"
_WITH_INDICES = frozenset({"_index_put_impl", "_unsafe_index_put", "index", "index_put"})
"""Ops whose indices torch brings to the device of the values."""
_WITH_LENGTHS = frozenset({"_ctc_loss", "_ctc_loss_backward", "_pack_padded_sequence"})
"""Ops whose lengths torch wants in CPU memory."""


@functools.cache
def device_types() -> frozenset[str]:
    """Return the kinds of devices that have kernels, such as `cpu`.

    ROCm, which torch calls `cuda`, has none. Before 2.9, torch cannot be kept from composing some ops in
    another way on a GPU (device_choices.py).
    """
    return frozenset({"cpu", CUDA} if torch.version.cuda is not None and can_override() else {"cpu"})


def graph_keys() -> dict[str, str]:
    """Return, for each kind of device, where torch's dispatcher adds ops to the autograd graph."""
    keys = {"cpu": GRAPH_KEY, CUDA: CUDA_GRAPH_KEY}
    return {device: keys[device] for device in sorted(device_types())}


def placed(op: Any, compute: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handler | None:
    """Return what computes an op for calls like this one, by the devices of its tensors.

    Args:
        op: the `OpOverload`.
        compute: its handler.
        args: its arguments.
        kwargs: those by name.

    Returns:
        the handler, or one that first brings tensors without dimensions to the device of the others; None
        where others are apart.
    """
    tensors = list(tensors_in((args, tuple(kwargs.values()))))
    elsewhere = {each.device for each in tensors if not each.is_cpu}
    here = [each for each in tensors if each.is_cpu]
    if not elsewhere or not here:
        return compute if len(elsewhere) < 2 else None
    name = base_name(op)
    if name in _WITH_LENGTHS and not any(each.dtype.is_floating_point for each in here):
        return compute
    if len(elsewhere) > 1 or (name not in _WITH_INDICES and any(each.dim() for each in here)):
        return None
    if any(each.dim() and each.dtype.is_floating_point for each in here):
        return None
    return _brought(compute, written_arguments(op), elsewhere.pop())


def _brought(
    compute: Handler, written: tuple[frozenset[int], frozenset[str]], device: torch.device
) -> Handler:
    places, names = written

    def bring(value: Any) -> Any:
        return mapped(value, lambda tensor: tensor.to(device) if tensor.is_cpu else tensor)

    @functools.wraps(compute)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = [each if at in places else bring(each) for at, each in enumerate(args)]
        return compute(
            *given, **{name: each if name in names else bring(each) for name, each in kwargs.items()}
        )

    return run


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among some arguments and their lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)


def mapped(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return an argument with its tensors changed, in lists, tuples and named tuples too."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if not isinstance(value, tuple | list):
        return value
    items: Iterable[Any] = (mapped(item, change) for item in value)
    make: Any = getattr(value, "_make", type(value))
    return make(items)
