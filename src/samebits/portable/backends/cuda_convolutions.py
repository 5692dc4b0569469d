"""Convolutions on a GPU: large ones by tiles (native/cuda/portable_conv.cu), others a thread per output."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch

from samebits._cuda.tile_shapes import CONV_SHAPES
from samebits._cuda.units import PRODUCTS, convolutions
from samebits.portable.backends.cuda_chains import K_BLOCK, Chains, are_few, blocks_each
from samebits.portable.backends.cuda_kernels import MOST_BLOCKS, suffixed
from samebits.portable.backends.native_convolutions import NativeConvolutions
from samebits.portable.backends.parameters import Conv
from samebits.portable.backends.parameters_cuda import SbdConvWeight

if TYPE_CHECKING:
    from torch import Tensor

    from samebits._cuda.tile_shapes import ConvShape

_FEWEST_ROWS = 8
"""Channels of the output in a group; a tile of fewer would compute little more than nothing."""
_MOST_PLACES, _MOST_POSITIONS = 1 << 31, 1 << 29
_SPEEDS = {128: 1.0, 64: 0.95, 32: 0.75}
"""How fast a tile of so many rows may compute: what it reads is used by fewer rows. No GPU was asked."""


class CudaConvolutions(NativeConvolutions):
    """Chooses the tile of a convolution, and how many thread blocks share the sum of a weight's gradient."""

    _launch: Any
    _launch_tiles: Any
    _most_shared: int
    _processors: int

    def _conv(self, **parameters: Any) -> None:
        given = Conv(**parameters)
        steps = given.stride if given.is_transposed else (1, 1, 1)
        pixels = given.samples * prod(-(-n // step) for n, step in zip(given.out_size, steps, strict=True))
        taps = prod(given.kernel)
        blocks = -(-given.depth * taps // K_BLOCK)
        shape = None
        if pixels and not given.is_f64 and _fits(given, pixels):
            shape = self._shape(given.rows, pixels * given.groups, lambda s: s.conv_bytes(taps, blocks))
        if shape is None:
            super()._conv(**parameters)
            return
        grid = -(-pixels // shape.columns), -(-given.rows // shape.rows), given.groups * prod(steps)
        block = shape.threads, shape.conv_bytes(taps, blocks)
        self._launch_tiles(convolutions(shape), f"conv_tile_{shape.rows}", given, grid, block)

    def _conv_weight(self, out: Tensor, **parameters: Any) -> None:
        share = SbdConvWeight(chains=0, first_block=0, blocks=0, blocks_each=0, **parameters)
        columns = share.depth * prod(share.kernel)
        blocks = -(-share.samples * prod(share.out_size) // K_BLOCK)
        shape = None
        if out.dtype is torch.float32 and _fits(share, columns):
            wanted = columns * share.groups
            shape = self._shape(share.rows, wanted, lambda each: each.weight_bytes(is_apart=False))
        if shape is None:
            self._add_shares(out, share, blocks, None)
            return
        grid = -(-columns // shape.columns), -(-share.rows // shape.rows), share.groups
        if are_few(prod(grid), self._processors) and blocks > 1:
            self._add_shares(out, share, blocks, shape)
            return
        whole = share._replace(chains=out.data_ptr(), blocks=blocks, blocks_each=max(blocks, 1))
        block = shape.threads, shape.weight_bytes(is_apart=False)
        self._launch_tiles(convolutions(shape), f"conv_weight_tile_{shape.rows}", whole, grid, block)

    def _add_shares(self, out: Tensor, share: SbdConvWeight, blocks: int, shape: ConvShape | None) -> None:
        """Compute the chain of each block, as many at a time as memory is meant for, and add them."""
        is_f64 = out.dtype is torch.float64
        for chains in Chains.of(out, share.groups, blocks):
            part = share._replace(
                chains=chains.memory.data_ptr(), first_block=chains.first, blocks=chains.count
            )
            if shape is None:
                threads = chains.memory.numel()
                self._launch(PRODUCTS, suffixed("conv_weight_chains", is_f64=is_f64), part, threads)
            elif chains.count:
                self._launch_share(part, shape)
            self._launch(PRODUCTS, suffixed("add_chains", is_f64=is_f64), chains.parameters(out), out.numel())

    def _launch_share(self, part: SbdConvWeight, shape: ConvShape) -> None:
        across, down = -(-part.depth * prod(part.kernel) // shape.columns), -(-part.rows // shape.rows)
        each = blocks_each(part.blocks, across * down * part.groups, self._processors)
        grid = across, down, part.groups * -(-part.blocks // each)
        block = shape.threads, shape.weight_bytes(is_apart=True)
        name = f"conv_weight_chains_{shape.rows}"
        self._launch_tiles(convolutions(shape), name, part._replace(blocks_each=each), grid, block)

    def _shape(self, rows: int, columns: int, shared_bytes: Any) -> ConvShape | None:
        """Return the tile that computes so many rows fastest, if one fits."""
        fitting = [each for each in CONV_SHAPES if shared_bytes(each) <= self._most_shared]
        if rows < _FEWEST_ROWS or not fitting:
            return None
        busy = [each for each in fitting if not are_few(_tiles(each, rows, columns), self._processors)]
        return min(busy or fitting[-1:], key=lambda each: _time(each, rows))


def _tiles(shape: ConvShape, rows: int, columns: int) -> int:
    return -(-rows // shape.rows) * -(-columns // shape.columns)


def _time(shape: ConvShape, rows: int) -> float:
    return -(-rows // shape.rows) * shape.rows / _SPEEDS[shape.rows]


def _fits(given: Conv | SbdConvWeight, columns: int) -> bool:
    """Tell whether places have 31 bits, positions in a dimension 29, and the grid numbers for all."""
    places = (
        columns + 128,
        given.samples * prod(given.out_size) + 128,
        given.depth * prod(given.size),
        given.rows * given.depth * prod(given.kernel),
    )
    geometry = (given.size, given.out_size, given.kernel, given.stride, given.padding, given.dilation)
    reached = (
        image + out * stride + kernel * dilation + padding
        for image, out, kernel, stride, padding, dilation in zip(*geometry, strict=True)
    )
    is_small = max(places) < _MOST_PLACES and max(reached) < _MOST_POSITIONS
    return is_small and max(given.rows, given.groups * prod(given.stride)) <= MOST_BLOCKS
