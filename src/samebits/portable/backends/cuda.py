"""The kernels for GPUs of NVIDIA as a backend; what has none goes to the CPU and back (detour.py).

Where the C kernels of the CPU do several things in one call, such as a group norm's gradient, they are
several launches here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits._cuda.units import OTHERS, REDUCE
from samebits.portable._devices import tensors_in
from samebits.portable.backends.cuda_convolutions import CudaConvolutions
from samebits.portable.backends.cuda_kernels import LANES, suffixed
from samebits.portable.backends.cuda_layers import CudaAttention, CudaLstm
from samebits.portable.backends.cuda_norms import CudaNorms
from samebits.portable.backends.cuda_products import CudaProducts
from samebits.portable.backends.detour import Detour
from samebits.portable.backends.interface import Backend
from samebits.portable.backends.native import NativeBackend
from samebits.portable.backends.parameters import Optimizer
from samebits.portable.backends.parameters_cuda import ON_DEVICE, SbdBranches, SbdReduce
from samebits.portable.kernels import reductions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.backends.cuda_kernels import CudaKernels
    from samebits.portable.backends.interface import Optional

_CHUNK = 256
_float64 = torch.float64
Axis = tuple[int, int, int]
"""A size, the stride in a, the stride in b."""


def _detoured(name: str) -> Any:
    def method(self: CudaBackend, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._detour, name)(*args, **kwargs)

    return method


def _with_checks(backend: type[CudaBackend]) -> type[CudaBackend]:
    """Have each method of `Backend` look at the devices first: an address of the CPU is none of the GPU."""
    for name, method in vars(Backend).items():
        if callable(method) and not name.startswith("_"):
            setattr(backend, name, _checked(getattr(backend, name)))
    return backend


def _checked(method: Any) -> Any:
    @functools.wraps(method)
    def run(self: CudaBackend, *args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            # Most are tensors: a generator for each would take longer than the rest.
            for tensor in (value,) if isinstance(value, torch.Tensor) else tensors_in(value):
                if tensor.get_device() != self.index:
                    raise RuntimeError(f"a kernel of cuda:{self.index} got a tensor on {tensor.device}")
        return method(self, *args, **kwargs)

    return run


@_with_checks
class CudaBackend(CudaProducts, CudaConvolutions, CudaNorms, CudaAttention, CudaLstm, NativeBackend):
    """The backend of one GPU.

    Args:
        index: of the device.
        kernels: that run there.
        host: computes what the GPU has no kernels for.
    """

    def __init__(self, index: int, kernels: CudaKernels, host: Backend) -> None:
        untyped: Any = kernels
        super().__init__(untyped)
        self.index = index
        self._detour = Detour(host)
        self._launch, self._launch_tiles = kernels.launch, kernels.launch_tiles
        self._most_shared, self._processors = kernels.most_shared, kernels.processors

    @property
    def name(self) -> str:
        """Return the architecture, such as `sm_90`."""
        kernels: Any = self._kernels
        major, minor = kernels.capability
        return f"sm_{major}{minor}"

    fourier = _detoured("fourier")
    rotate = _detoured("rotate")
    reflect_columns = _detoured("reflect_columns")
    multiply_reflections = _detoured("multiply_reflections")
    cholesky = _detoured("cholesky")
    lu = _detoured("lu")
    solve_triangular = _detoured("solve_triangular")

    def reduce(
        self, name: str, x: Tensor, reduced: tuple[int, ...], out: Tensor, b: Optional, mean: Optional
    ) -> None:
        """See `Backend`."""
        keep, over = _axes(x, b, reduced)
        if len(keep) > ON_DEVICE or len(over) > ON_DEVICE:
            order = [*(d for d in range(x.dim()) if d not in reduced), *reduced]
            x = x.permute(order).contiguous()
            b = None if b is None else b.permute(order).contiguous()
            reduced = tuple(range(x.dim() - len(reduced), x.dim()))
            keep, over = _axes(x, b, reduced)  # at most one of each
        n = x.numel() // max(out.numel(), 1)
        chunks, outputs, is_f64 = -(-n // _CHUNK), out.numel(), x.dtype is _float64
        sums = out if chunks == 1 else x.new_empty(chunks * outputs)
        given = SbdReduce(
            kind=reductions.NAMES.index(name),
            a=x.data_ptr(),
            b=0 if b is None else b.data_ptr(),
            mean=0 if mean is None else mean.data_ptr(),
            out=sums.data_ptr(),
            outputs=outputs,
            n=n,
            chunks=chunks,
            kept=len(keep),
            reduced=len(over),
            keep=_flat(keep),
            over=_flat(over),
        )
        columns = bool(over) and over[-1][1] != 1 and bool(keep) and keep[-1][1] == 1
        function = suffixed("reduce_columns" if columns else "reduce_rows", is_f64=is_f64)
        self._launch(REDUCE, function, given, chunks * outputs * (1 if columns else LANES))
        if chunks > 1:
            self._join(sums, chunks, out, is_product=name == "product_over")

    def _join(self, sums: Tensor, n: int, out: Tensor, *, is_product: bool) -> None:
        """Go up the tree: 256 rows of sums at a time become one, until one is left."""
        width = out.numel()
        while n > 1:
            rest = -(-n // _CHUNK)
            to = out if rest == 1 else sums.new_empty(rest * width)
            given = SbdBranches(is_product, sums.data_ptr(), to.data_ptr(), n, width)
            self._launch(REDUCE, suffixed("branches", is_f64=out.dtype is _float64), given, rest * width)
            sums, n = to, rest

    def accumulate(self, out: Tensor, index: Tensor, src: Tensor, kind: str, *, skip: bool) -> bool:
        """See `Backend`."""
        rows = out.shape[1]
        if not src.numel():
            return True
        if bool(((index >= rows) | (index < (-1 if skip else -rows))).any()):
            return False
        self._take_in(out, index, src, kind, skip=skip, bad=0)  # which the kernel does not write
        return True

    def _step(
        self,
        flags: int,
        numbers: tuple[float, ...],
        groups: Sequence[Any],
        scales: Sequence[tuple[float, float]],
        *,
        is_sgd: bool,
    ) -> None:
        for start in range(0, len(groups), ON_DEVICE):
            some = slice(start, start + ON_DEVICE)
            super()._step(flags, numbers, groups[some], scales[some], is_sgd=is_sgd)

    def _take_step(self, **parameters: Any) -> None:
        given = Optimizer(**parameters)
        most = max(int(count) for count in given.each[:: len(given.each) // given.tensors])
        function = suffixed("sgd" if given.is_sgd else "adam", is_f64=given.is_f64)
        self._launch(OTHERS, function, given, most, given.tensors)


def _axes(x: Tensor, b: Optional, reduced: tuple[int, ...]) -> tuple[list[Axis], list[Axis]]:
    """Return the axes that stay and those that are reduced, without sizes of 1, joined where possible."""
    keep: list[Axis] = []
    over: list[Axis] = []
    of_b = x.stride() if b is None else b.stride()
    for d, axis in enumerate(zip(x.shape, x.stride(), of_b, strict=True)):
        if axis[0] != 1:
            _add_axis(over if d in reduced else keep, axis)
    return keep, over


def _add_axis(axes: list[Axis], inner: Axis) -> None:
    size, a, b = inner
    if axes and axes[-1][1] == a * size and axes[-1][2] == b * size:
        axes[-1] = (axes[-1][0] * size, a, b)
    else:
        axes.append(inner)


def _flat(axes: list[Axis]) -> tuple[int, ...]:
    return tuple(number for axis in axes for number in axis)
