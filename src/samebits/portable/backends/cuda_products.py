"""Products of float32 matrices on a GPU, tile by tile where they are large (native/cuda/gemm_body.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._cuda.tile_shapes import SHAPES, SPLIT
from samebits._cuda.units import PRODUCTS, tiles
from samebits.portable.backends.cuda_chains import K_BLOCK, Chains, are_few, blocks_each
from samebits.portable.backends.cuda_kernels import MOST_BLOCKS, suffixed
from samebits.portable.backends.native import added_strides
from samebits.portable.backends.native_norms import NativeNorms, address
from samebits.portable.backends.parameters import Gemm
from samebits.portable.backends.parameters_cuda import GemmProduct

if TYPE_CHECKING:
    from torch import Tensor

    from samebits._cuda.tile_shapes import TileShape
    from samebits.portable.backends.interface import Optional
    from samebits.portable.kernels.contractions import Sizes

_LEAST_WORK = 1 << 22
_LONG = 1024
"""A chain of so many terms is too long for a thread to wait for each of them."""
_MOST = 1 << 30
"""Of a size: the kernels count in 31 bits, beyond the end of a matrix too."""


class CudaProducts(NativeNorms):
    """Products of matrices: tile by tile where they are large or long, else a thread for each output."""

    _launch: Any
    _launch_tiles: Any
    _most_shared: int
    _processors: int

    def gemm(
        self, a: Tensor, b: Tensor, added: Optional, scale: tuple[float, float], sizes: Sizes, out: Tensor
    ) -> None:
        """See `Backend`."""
        if not _is_large(a, sizes):
            super().gemm(a, b, added, scale, sizes, out)  # type: ignore[misc]
            return
        is_plain = added is None and scale[0] == 1
        target = out if is_plain else torch.empty_like(out)
        operands = [x if x.dim() == 3 else x[None] for x in (a, b, target)]
        for first in range(0, operands[0].shape[0], MOST_BLOCKS):
            one, other, result = (x[first : first + MOST_BLOCKS] for x in operands)
            self._multiply(_in_lines(one), _in_lines(other), result)
        if not is_plain:
            self._end(target, added, scale, sizes, out)

    def _multiply(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        (batches, m, n), k = out.shape, a.shape[2]
        shape = next(each for each in SHAPES if each.shared_bytes(b_along_k=True) <= self._most_shared)
        blocks = -(-k // K_BLOCK)
        if blocks == 1 or not are_few(batches * _tiles(shape, m, n), self._processors):
            for first in range(0, m, MOST_BLOCKS * shape.rows):
                rows = slice(first, first + MOST_BLOCKS * shape.rows)
                self._launch_product(shape, a[:, rows], b, out[:, rows], blocks)
            return
        for chains in Chains.of(out, batches, blocks):
            part = slice(chains.first * K_BLOCK, (chains.first + chains.count) * K_BLOCK)
            each = blocks_each(chains.count, batches * _tiles(SPLIT, m, n), self._processors)
            self._launch_product(SPLIT, a[:, :, part], b[:, part], chains.memory, each)
            self._launch(PRODUCTS, suffixed("add_chains", is_f64=False), chains.parameters(out), out.numel())

    def _launch_product(self, shape: TileShape, a: Tensor, b: Tensor, out: Tensor, each: int) -> None:
        """Queue products, of which each thread block takes so many blocks of k."""
        (batches, m, k), n = a.shape, b.shape[2]
        a_along_k, b_along_k = a.stride(2) == 1, b.stride(2) != 1
        product = GemmProduct(
            a.data_ptr(), b.data_ptr(), out.data_ptr(),
            a.stride(1 if a_along_k else 2), b.stride(2 if b_along_k else 1),
            a.stride(0), b.stride(0), out.stride(0), m | n << 32, k | each << 32,
        )  # fmt: skip
        self._launch_tiles(
            tiles(shape, a_along_k=a_along_k, b_along_k=b_along_k),
            shape.kernel(a_along_k=a_along_k, b_along_k=b_along_k),
            product,
            (-(-n // shape.columns), -(-m // shape.rows), batches * -(-k // (each * K_BLOCK))),
            (shape.threads, shape.shared_bytes(b_along_k=b_along_k)),
        )

    def _end(
        self, product: Tensor, added: Optional, scale: tuple[float, float], sizes: Sizes, out: Tensor
    ) -> None:
        """Write `product * alpha + added * beta`."""
        batches, m, n, k = sizes
        given = Gemm(
            is_f64=False, batches=batches or 1, m=m, n=n, k=k, a=product.data_ptr(),
            a_strides=(n, 1, m * n), b=0, b_strides=(0, 0, 0), out=out.data_ptr(), out_strides=(n, 1, m * n),
            added=address(added), added_strides=added_strides(added, n, out), alpha=scale[0], beta=scale[1],
        )  # fmt: skip
        self._launch(PRODUCTS, "gemm_end_f32", given, out.numel())


def _tiles(shape: TileShape, m: int, n: int) -> int:
    return -(-m // shape.rows) * -(-n // shape.columns)


def _is_large(a: Tensor, sizes: Sizes) -> bool:
    batches, m, n, k = sizes
    if a.dtype is not torch.float32 or max(m, n, k) > _MOST or not m * n:
        return False
    return k > _LONG or max(1, batches) * m * n * k >= _LEAST_WORK


def _in_lines(x: Tensor) -> Tensor:
    """Return matrices of which one stride is 1."""
    return x if 1 in x.stride()[1:] else x.contiguous()
