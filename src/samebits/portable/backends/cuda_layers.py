"""Attention and LSTMs on a GPU: the parts of the backend that consist of several launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._cuda.units import PLACES, ROWS
from samebits.portable.backends.cuda_kernels import LANES, suffixed
from samebits.portable.backends.native_lstm import NativeLstm
from samebits.portable.backends.native_norms import NativeNorms, address
from samebits.portable.backends.parameters_cuda import (
    SbdLstmStep,
    SbdLstmStepGradient,
    SbdSlopes,
    SbdWeights,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from samebits.portable.backends.interface import Optional, ThreeTensors
    from samebits.portable.kernels.attention import Heads
    from samebits.portable.kernels.lstm import Course, Gradients, Layer, Slopes

_float64 = torch.float64
_NO_STRIDES = (0, 0, 0, 0)
_MOST_BYTES = 1 << 30
"""Of the weights of attention that are in memory at a time; a backward pass has twice as much."""


class CudaAttention(NativeNorms):
    """Attention by products of matrices, for as many heads at a time as their weights may take memory."""

    _launch: Any
    gemm: Any

    def attend(self, heads: Heads, out: Tensor, logs: Tensor) -> None:
        """See `Backend`."""
        for part, at in _portions(heads):
            weights = self._weights(part, logs[at])
            out[at] = self._product(weights, _flat(part.value)).view(out[at].shape)

    def attend_backward(self, heads: Heads, gradient: Tensor, of_heads: ThreeTensors) -> None:
        """See `Backend`."""
        for part, at in _portions(heads):
            of_query, of_key, of_value = of_heads
            self._attend_backward(part, gradient[at], (of_query[at], of_key[at], of_value[at]))

    def _attend_backward(self, heads: Heads, gradient: Tensor, of_heads: ThreeTensors) -> None:
        of_query, of_key, of_value = of_heads
        query, key, value, given = map(_flat, (*heads[:3], gradient))
        weights = self._weights(heads, None)
        of_value.copy_(self._product(weights.transpose(1, 2), given).view(of_value.shape))
        slopes = self._product(given, value.transpose(1, 2))
        all_heads, queries, keys = weights.shape
        sizes = SbdSlopes(
            slopes.data_ptr(), weights.data_ptr(), all_heads, queries, keys, is_causal=heads.is_causal
        )
        function = suffixed("attention_slopes", is_f64=slopes.dtype is _float64)
        self._launch(ROWS, function, sizes, all_heads * queries * LANES)
        of_query.copy_(self._product(slopes, key).view(of_query.shape))
        of_key.copy_(self._product(slopes.transpose(1, 2), query).view(of_key.shape))

    def _weights(self, heads: Heads, logs: Optional) -> Tensor:
        """Return what the values are weighted with: (all heads, queries, keys)."""
        scores = self._product(_flat(heads.query), _flat(heads.key).transpose(1, 2))
        all_heads, queries, keys = scores.shape
        given = SbdWeights(
            scores.data_ptr(),
            address(heads.mask),
            address(logs),
            all_heads,
            heads.query.shape[1],
            queries,
            keys,
            is_causal=heads.is_causal,
            mask_strides=_NO_STRIDES if heads.mask is None else heads.mask.stride(),
        )
        function = suffixed("attention_weights", is_f64=scores.dtype is _float64)
        self._launch(ROWS, function, given, all_heads * queries * LANES)
        return scores

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        batches, m, k = a.shape
        n = b.shape[2]
        out = a.new_empty((batches, m, n))
        self.gemm(a, b, None, (1.0, 0.0), (batches, m, n, k), out)
        return out


def _portions(heads: Heads) -> Iterator[tuple[Heads, tuple[slice, slice]]]:
    """Yield heads whose weights take at most `_MOST_BYTES`, one at least: of several samples, or of one.

    Heads of queries that share one of keys get it each. The place of each portion is yielded with it.
    """
    batch, count, queries = heads.query.shape[:3]
    each = queries * heads.key.shape[2] * heads.query.element_size()
    at_a_time = max(1, _MOST_BYTES // each)
    samples, some = (at_a_time // count, count) if at_a_time >= count else (1, at_a_time)
    tensors = [_each_head(x, count) for x in heads[:3]]
    for sample in range(0, batch, samples):
        for head in range(0, count, some):
            at = slice(sample, sample + samples), slice(head, head + some)
            mask = None if heads.mask is None else heads.mask[at]
            query, key, value = (x[at] for x in tensors)
            yield heads._replace(query=query, key=key, value=value, mask=mask), at


def _each_head(x: Tensor, count: int) -> Tensor:
    return x if x.shape[1] == count else x.repeat_interleave(count // x.shape[1], 1)


def _flat(x: Tensor) -> Tensor:
    """Return (all heads, positions, size)."""
    return x.reshape(-1, *x.shape[2:])


class CudaLstm(NativeLstm):
    """The steps of an LSTM: a product, and a launch for all else."""

    _launch: Any
    gemm: Any
    reduce: Any

    def lstm(self, x: Tensor, layer: Layer, out: Tensor, course: Course) -> None:
        """See `Backend`."""
        steps, batch, size = out.shape
        state, cell = layer.out, layer.cell
        keeps = len(course.cells) == steps
        function = suffixed("lstm_step", is_f64=x.dtype is _float64)
        for step in reversed(range(steps)) if layer.is_reversed else range(steps):
            gates, next_cell, tanh_cell = (each[step if keeps else 0] for each in course)
            read = self._times(state, layer.weight.t()), layer.bias, x[step], cell
            written = out[step], gates, next_cell, tanh_cell
            given = SbdLstmStep._make((*map(address, (*read, *written)), batch, size))
            self._launch(PLACES, function, given, batch * size)
            state, cell = out[step], next_cell

    def lstm_gradient(self, layer: Layer, course: Course, slopes: Slopes, out: Gradients) -> None:
        """See `Backend`."""
        steps = len(course.cells)
        order = list(reversed(range(steps)) if layer.is_reversed else range(steps))
        states = [layer.out, *(self._result(course, step) for step in order)]
        cells = [layer.cell, *(course.cells[step] for step in order)]
        of_next, of_cell = slopes.last_out, slopes.last_cell
        of_weight, of_bias = (None if each is None else each.zero_() for each in (out.weight, out.bias))
        for number, step in reversed(list(enumerate(order))):
            slope = None if slopes.out is None else slopes.out[step]
            of_cell = self._step_back(course, step, cells[number], (slope, of_next, of_cell), out.x[step])
            of_next = self._times(out.x[step], layer.weight)
            if of_weight is not None:
                of_weight.add_(self._times(out.x[step].t(), states[number]))
            if of_bias is not None:
                total = torch.empty_like(of_bias)
                self.reduce("sum_over", out.x[step], (0,), total, None, None)
                of_bias.add_(total)
        if of_next is not None and of_cell is not None:  # there is at least one step
            out.out.copy_(of_next)
            out.cell.copy_(of_cell)

    def _result(self, course: Course, step: int) -> Tensor:
        return course.gates[step].chunk(4, 1)[3] * course.tanh_cells[step]

    def _step_back(
        self,
        course: Course,
        step: int,
        before: Tensor,
        slopes: tuple[Optional, Optional, Optional],
        of_gates: Tensor,
    ) -> Tensor:
        """Write the gradient of the gates, and return that of the cell state before the step."""
        of_before = torch.empty_like(before)
        of_out, of_next, of_cell = slopes
        batch, size = before.shape
        read = course.gates[step], course.tanh_cells[step], before, of_out, of_next, of_cell
        addresses = map(address, (*read, of_gates, of_before))
        out_step = 0 if of_out is None else of_out.stride(0)
        given = SbdLstmStepGradient._make((*addresses, batch, size, out_step))
        function = suffixed("lstm_step_gradient", is_f64=before.dtype is _float64)
        self._launch(PLACES, function, given, batch * size)
        return of_before

    def _times(self, a: Tensor, b: Tensor) -> Tensor:
        out = a.new_empty((a.shape[0], b.shape[1]))
        self.gemm(a, b, None, (1.0, 0.0), (0, a.shape[0], b.shape[1], a.shape[1]), out)
        return out
