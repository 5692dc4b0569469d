"""Ops that take or write values at places, where a GPU takes other places or writes them in another order.

`scatter` with an index that is there twice keeps either value; on the CPU the last one stays. Nearest
neighbours are found with other roundings (ATen/native/cuda/UpSampleNearest2d.cu, 2.13.0), and so are the
windows of adaptive pooling of very large images.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._tensors import LOW_PRECISION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

_MOST_IN_FLOAT32 = 3000
"""Sizes of images up to which the bounds of windows, computed in float32, were found to be right."""


def scattered(_: Any, x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of x with values of `src` at some places; of several for one place the last one.

    Args:
        x: of any dtype.
        dim: along which the indices are.
        index: int64, no larger than x but along `dim`, nor than `src`.
        src: the values.

    Raises:
        RuntimeError: for other dtypes.
    """
    if src.dtype != x.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.dtype not in {torch.int64, torch.int32}:
        raise RuntimeError("scatter(): Expected dtype int64 for index")
    if not index.numel():
        return x.clone()
    if not x.dim() or not index.dim():
        return scattered(_, x.reshape(-1), 0, index.reshape(-1), src.reshape(-1)).view(x.shape)
    region = tuple(slice(n if d != dim % x.dim() else None) for d, n in enumerate(index.shape))
    shape = [1] * x.dim()
    shape[dim] = index.shape[dim]
    place = torch.arange(index.shape[dim], device=x.device).view(shape).expand(index.shape)
    last = torch.full(x[region].shape, -1, dtype=torch.int64, device=x.device)
    last = last.scatter_reduce(dim, index.to(torch.int64), place, "amax")
    given = src[tuple(slice(n) for n in index.shape)].gather(dim, last.clamp(min=0))
    result = x.clone()
    result[region] = torch.where(last >= 0, given, x[region])
    return result


def index_copied(_: Any, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of x with slices of `source`; of several for one place the last one."""
    if not x.dim():
        return source.reshape(()).clone() if index.numel() else x.clone()
    shape = [1] * x.dim()
    shape[dim] = -1
    return scattered(_, x, dim, index.view(shape).expand(source.shape), source)


def interpolations() -> dict[str, Callable[..., Any]]:
    """Return the ops that take the nearest neighbours."""
    names = ("upsample_nearest", "_upsample_nearest_exact")
    return {f"{name}{n}d": functools.partial(_nearest, n=n) for name in names for n in (1, 2, 3)}


def _nearest(take: Any, x: Tensor, output_size: Sequence[int], *scales: float | None, n: int) -> Tensor:
    """Return the values at the places that the CPU finds, for numbers of places instead of values."""
    dtype = torch.float32 if x.dtype in LOW_PRECISION else x.dtype
    if not dtype.is_floating_point:
        dtype = torch.float32
    sizes = x.shape[-n:]
    grid = torch.meshgrid(*(torch.arange(size, dtype=dtype, device="cpu") for size in sizes), indexing="ij")
    taken = take(torch.stack(grid)[None], output_size, *scales)[0].to(torch.int64)
    flat = functools.reduce(lambda at, d: at * sizes[d] + taken[d], range(n), torch.zeros_like(taken[0]))
    planes = x.flatten(-n).index_select(-1, flat.reshape(-1).to(x.device))
    return planes.view(*x.shape[:-n], *flat.shape)


def pooled() -> dict[str, Callable[..., Any]]:
    """Return the ops of pooling."""
    return {
        "adaptive_max_pool2d": _adaptive,
        "adaptive_max_pool3d": _adaptive,
        "max_pool2d_with_indices": _in_order,
    }


def _adaptive(pool: Any, x: Tensor, output_size: Sequence[int]) -> Any:
    if max(x.shape[-len(output_size) :]) <= _MOST_IN_FLOAT32:
        return None
    return tuple(each.to(x.device) for each in pool(x.cpu(), output_size))


def _in_order(pool: Any, x: Tensor, *args: Any) -> Any:
    """Leave tensors in another order than that of their dimensions to the kernel for the usual one."""
    if x.is_contiguous():
        return None
    layout = torch.channels_last if x.dim() == 4 else torch.contiguous_format
    return tuple(each.contiguous(memory_format=layout) for each in pool(x.contiguous(), *args))
