"""The steps of an LSTM by the reference: the part of that backend that is about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samebits.portable._tensors import as_array, as_tensor
from samebits.portable.reference import lstm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.kernels.lstm import Course, Gradients, Layer, Slopes
    from samebits.portable.reference.fma import Array


class ReferenceLstm:
    """The part of the reference backend that computes the steps of an LSTM. As `Backend` says."""

    def lstm(self, x: Tensor, layer: Layer, out: Tensor, course: Course) -> None:
        """See `Backend`."""
        steps = lstm.run(_in_turn(as_array(x), layer), _arrays(layer))
        for to, values in zip((out, *course), zip(*steps, strict=True), strict=True):
            to.copy_(_stacked(values[-len(to) :], layer))

    def lstm_gradient(self, layer: Layer, course: Course, slopes: Slopes, out: Gradients) -> None:
        """See `Backend`."""
        kept = (_in_turn(as_array(each), layer) for each in course)
        steps = [lstm.kept_step(*each) for each in zip(*kept, strict=True)]
        first, *last = [None if each is None else as_array(each) for each in slopes]
        given = lstm.Slopes(None if first is None else _in_turn(first, layer), *last)
        of_x, sums = lstm.gradients(_arrays(layer), steps, given)
        out.x.copy_(_stacked(of_x, layer))
        for to, value in zip(out[1:5], sums, strict=True):
            if to is not None:
                to.copy_(as_tensor(value))


def _arrays(layer: Layer) -> lstm.Layer:
    bias = None if layer.bias is None else as_array(layer.bias)
    return lstm.Layer(as_array(layer.weight), bias, as_array(layer.out), as_array(layer.cell))


def _in_turn(values: Array, layer: Layer) -> Array:
    return values[::-1] if layer.is_reversed else values


def _stacked(values: Sequence[Array], layer: Layer) -> Tensor:
    return as_tensor(np.stack(values[::-1] if layer.is_reversed else values))
