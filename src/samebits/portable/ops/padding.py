"""Gradients of padding, and packed sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import declares_handlers, handles
from samebits.portable.ops.interpolation import spread_planes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from samebits.portable._registry import Table


def _reflected(size: int, before: int, after: int) -> Tensor:
    at = (torch.arange(size + before + after) - before).abs()
    return torch.where(at >= size, 2 * (size - 1) - at, at)


def _replicated(size: int, before: int, after: int) -> Tensor:
    return (torch.arange(size + before + after) - before).clamp(0, size - 1)


def _make(n: int, index: Callable[[int, int, int], Tensor]) -> Callable[..., Tensor]:
    def backward(grad_output: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
        pairs = [padding[2 * d : 2 * d + 2] for d in range(n)][::-1]
        indices = [index(size, *pair) for size, pair in zip(self.shape[-n:], pairs, strict=True)]
        return spread_planes(grad_output, indices, self.shape)

    return backward


@handles("aten::_pack_padded_sequence")
def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Compute `aten::_pack_padded_sequence`: at each step the sequences that reach it; only moves data."""
    steps = input.transpose(0, 1) if batch_first else input
    if bool((lengths[1:] > lengths[:-1]).any()) or bool((lengths <= 0).any()):
        raise RuntimeError("lengths of packed sequences must be positive and in descending order")
    sizes = [int((lengths > step).sum()) for step in range(int(lengths[0]))]
    data = torch.cat([steps[step, :size] for step, size in enumerate(sizes)])
    return data, torch.tensor(sizes, dtype=torch.int64)


@declares_handlers
def _gradients() -> Table:
    dimensions = (1, 2, 3)
    return {
        **{f"aten::reflection_pad{n}d_backward": _make(n, _reflected) for n in dimensions},
        **{f"aten::replication_pad{n}d_backward": _make(n, _replicated) for n in dimensions},
    }
