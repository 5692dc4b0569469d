"""Products of large float32 matrices on a GPU, tile by tile (native/cuda/gemm_body.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._cuda.tile_shapes import SHAPES
from samebits._cuda.units import PRODUCTS, tiles
from samebits.portable.backends.cuda_kernels import suffixed
from samebits.portable.backends.native import added_strides
from samebits.portable.backends.native_norms import NativeNorms, address
from samebits.portable.backends.parameters import Gemm
from samebits.portable.backends.parameters_cuda import GemmProduct

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.backends.interface import Optional
    from samebits.portable.kernels.contractions import Sizes

_LEAST_SIDE = 64
_LEAST_WORK = 1 << 22
_MOST_BATCHES = 64
_MOST = 2**31 - 1


class CudaProducts(NativeNorms):
    """Products of matrices: tile by tile where they are large, else a thread for each output."""

    _launch: Any
    _launch_tiles: Any
    _most_shared: int

    def gemm(
        self, a: Tensor, b: Tensor, added: Optional, scale: tuple[float, float], sizes: Sizes, out: Tensor
    ) -> None:
        """See `Backend`."""
        if not _is_large(a, sizes):
            super().gemm(a, b, added, scale, sizes, out)  # type: ignore[misc]
            return
        is_plain = added is None and scale[0] == 1
        target = out if is_plain else torch.empty_like(out)
        pairs = zip(a, b, target, strict=True) if sizes[0] else [(a, b, target)]
        for one, other, result in pairs:
            self._multiply(_in_lines(one), _in_lines(other), result)
        if not is_plain:
            self._end(target, added, scale, sizes, out)

    def _multiply(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        (m, k), n = a.shape, b.shape[1]
        a_along_k, b_along_k = a.stride(1) == 1, b.stride(1) != 1
        shape = next(each for each in SHAPES if each.shared_bytes(b_along_k=b_along_k) <= self._most_shared)
        product = GemmProduct(
            a.data_ptr(), b.data_ptr(), out.data_ptr(),
            a.stride(0 if a_along_k else 1), b.stride(1 if b_along_k else 0),
            m | n << 32, k | -(-k // 128) << 32,
        )  # fmt: skip
        self._launch_tiles(
            tiles(shape, a_along_k=a_along_k, b_along_k=b_along_k),
            shape.kernel(a_along_k=a_along_k, b_along_k=b_along_k),
            product,
            (-(-n // shape.columns), -(-m // shape.rows)),
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
        self._launch(PRODUCTS, suffixed("gemm_end", is_f64=False), given, out.numel())


def _is_large(a: Tensor, sizes: Sizes) -> bool:
    batches, m, n, k = sizes
    if a.dtype is not torch.float32 or batches > _MOST_BATCHES or max(m, n, k) > _MOST:
        return False
    return min(m, n, k) >= _LEAST_SIDE and m * n * k >= _LEAST_WORK


def _in_lines(x: Tensor) -> Tensor:
    """Return a matrix of which one stride is 1."""
    return x if 1 in x.stride() else x.contiguous()
