"""The steps of an LSTM by the C kernels: the part of the native backend that is about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from samebits.portable.backends.native_norms import NativeNorms, address

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.kernels.lstm import Course, Gradients, Layer, Slopes

_float64 = torch.float64


class NativeLstm(NativeNorms):
    """The part of the native backend that calls the kernels of an LSTM."""

    def lstm(self, x: Tensor, layer: Layer, out: Tensor, course: Course) -> None:
        """See `Backend`."""
        steps, batch, size = out.shape
        self._kernels.lstm(
            is_f64=x.dtype is _float64,
            is_reversed=layer.is_reversed,
            keeps=len(course.cells) == steps,
            steps=steps,
            batch=batch,
            size=size,
            x=x.data_ptr(),
            weight=layer.weight.data_ptr(),
            bias=address(layer.bias),
            first_out=layer.out.data_ptr(),
            first_cell=layer.cell.data_ptr(),
            out=out.data_ptr(),
            gates=course.gates.data_ptr(),
            cells=course.cells.data_ptr(),
            tanh_cells=course.tanh_cells.data_ptr(),
        )

    def lstm_gradient(self, layer: Layer, course: Course, slopes: Slopes, out: Gradients) -> None:
        """See `Backend`."""
        steps, batch, size = course.cells.shape
        self._kernels.lstm_gradient(
            is_f64=course.cells.dtype is _float64,
            is_reversed=layer.is_reversed,
            steps=steps,
            batch=batch,
            size=size,
            wants_first_out=out.wants_out,
            weight=layer.weight.data_ptr(),
            first_out=layer.out.data_ptr(),
            first_cell=layer.cell.data_ptr(),
            course=tuple(map(address, course)),
            slopes=tuple(map(address, slopes)),
            of_out_strides=(0, 0, 0) if slopes.out is None else slopes.out.stride(),
            of_x=out.x.data_ptr(),
            of_weight=address(out.weight),
            of_bias=address(out.bias),
            of_first_out=out.out.data_ptr(),
            of_first_cell=out.cell.data_ptr(),
        )
