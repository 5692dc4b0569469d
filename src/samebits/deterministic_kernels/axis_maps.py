"""Gradients of linear maps along dimensions: means over windows, interpolation, padding.

Each input adds up, in one order, what the outputs that it reached give back. Where torch's kernels start
from the outputs and add with atomics, these start from the inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from samebits.deterministic_kernels.precision import exact_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class AxisMap(NamedTuple):
    """Which outputs an input reached along one dimension.

    Args:
        outputs: the output that each input reached first, second, ...: int64 of (most, inputs); the first
            output where there is none.
        weights: their weights, of the same shape; 0 where there is none.
        whole: for each row, whether all inputs have one.
        expansion: outputs for each input.
    """

    outputs: Tensor
    weights: Tensor
    whole: tuple[bool, ...]
    expansion: float


def real_of(dtype: torch.dtype) -> type[Any]:
    """Return the type in which positions and weights are computed for tensors of a dtype."""
    return np.float64 if dtype == torch.float64 else np.float32


def axis_map(inputs: Any, weights: Any, size: int, device: torch.device) -> AxisMap:
    """Return a map along one dimension, on a device.

    Args:
        inputs: for each output the inputs that it is made of: an array of (outputs, taps).
        weights: their weights; inputs with weight 0 are left out.
        size: the number of inputs.
        device: where it is used.
    """
    used = weights != 0
    outputs = np.broadcast_to(np.arange(len(inputs))[:, None], inputs.shape)[used]
    reached, values = inputs[used], weights[used]
    order = np.argsort(reached, kind="stable")
    outputs, reached, values = outputs[order], reached[order], values[order]
    counts = np.bincount(reached, minlength=size)
    rank = np.arange(len(reached)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(int(counts.max(initial=0)), 1)
    table, shares = np.zeros((most, size), np.int64), np.zeros((most, size), weights.dtype)
    table[rank, reached], shares[rank, reached] = outputs, values
    whole = tuple(bool((counts > row).all()) for row in range(most))
    on_device = [torch.from_numpy(array).to(device) for array in (table, shares)]
    return AxisMap(on_device[0], on_device[1], whole, len(inputs) / max(size, 1))


def spread(gradient: Tensor, maps: Sequence[AxisMap], template: Tensor) -> Tensor:
    """Return the gradient of the input.

    Args:
        gradient: of the outputs, whose last dimensions are those of the maps.
        maps: of the last dimensions.
        template: the result lies in memory as this tensor does.
    """
    out = gradient.to(exact_dtype(gradient.dtype))
    first = gradient.dim() - len(maps)
    # What makes the tensor smallest comes first.
    for at in sorted(range(len(maps)), key=lambda at: -maps[at].expansion):
        out = _along(out, first + at, maps[at])
    return laid_out_like(out.to(gradient.dtype), template)


def _along(gradient: Tensor, dim: int, axis: AxisMap) -> Tensor:
    shape = [1] * gradient.dim()
    shape[dim] = -1
    out: Tensor | None = None
    for row, outputs in enumerate(axis.outputs):
        weights = axis.weights[row].reshape(shape)
        share = gradient.index_select(dim, outputs)
        if not axis.whole[row]:
            share = torch.where(weights != 0, share, 0)  # 0 times infinity would be NaN
        out = share * weights if out is None else torch.addcmul(out, share, weights)
    assert out is not None  # noqa: S101 - a map has a row at least
    return out


def laid_out_like(result: Tensor, template: Tensor) -> Tensor:
    """Return a result in the order of dimensions in memory that torch's kernels give it.

    Args:
        result: of four or five dimensions, or another number.
        template: channels come last in the result's memory if they do in this tensor's.
    """
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(template.dim())
    if last is None or template.is_contiguous() or not template.is_contiguous(memory_format=last):
        return result.contiguous()
    return result.contiguous(memory_format=last)
