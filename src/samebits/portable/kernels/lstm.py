"""The steps of one layer and direction of an LSTM, and their gradients.

See "Layers that are compositions" in docs/reference/portable-numerics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from samebits.portable._tensors import REAL
from samebits.portable.backends import backend_of

if TYPE_CHECKING:
    from torch import Tensor


class Layer(NamedTuple):
    """What a layer begins with; of samples and units there are N and H.

    Attributes:
        weight: of the state (4H, H), gates in the order i, f, g, o.
        bias: (4H) or None.
        out: the first state (N, H).
        cell: the first cell state (N, H).
        is_reversed: whether it goes from the last step to the first.
    """

    weight: Tensor
    bias: Tensor | None
    out: Tensor
    cell: Tensor
    is_reversed: bool


class Course(NamedTuple):
    """What becomes of it at T steps: gates (T, N, 4H), cell states and their tanh (T, N, H)."""

    gates: Tensor
    cells: Tensor
    tanh_cells: Tensor


class Slopes(NamedTuple):
    """Gradients of all results, of the last one and of the last cell state; None where there is none."""

    out: Tensor | None
    last_out: Tensor | None
    last_cell: Tensor | None


class Gradients(NamedTuple):
    """Gradients of the inputs.

    Attributes:
        x, weight, bias, out, cell: of what has this name. Those of weight and bias may be None.
        wants_out: whether that of the first state is asked for; else it holds anything.
    """

    x: Tensor
    weight: Tensor | None
    bias: Tensor | None
    out: Tensor
    cell: Tensor
    wants_out: bool


def run(x: Tensor, layer: Layer, *, keeps: bool) -> tuple[Tensor, Course]:
    """Go through all steps.

    Args:
        x: what the inputs give to the gates (T, N, 4H), float32 or float64, nothing of it empty.
        layer: of the same dtype.
        keeps: whether the course of all steps is kept. If not, it has the last step only.

    Returns:
        the results (T, N, H), and the course.

    Raises:
        RuntimeError: if the sizes do not go together.
    """
    _check(x, layer)
    steps = x.shape[0] if keeps else 1
    units = layer.out.shape
    out = x.new_empty((x.shape[0], *units))
    course = Course(
        x.new_empty((steps, *x.shape[1:])),
        x.new_empty((steps, *units)),
        x.new_empty((steps, *units)),
    )
    backend_of(x).lstm(x.contiguous(), _contiguous(layer), out, course)
    return out, course


def gradients(
    layer: Layer, course: Course, slopes: Slopes, wanted: tuple[bool, bool, bool]
) -> Gradients | None:
    """Return the gradients; None if there are no slopes.

    Args:
        layer: the arguments of `run`.
        course: what it returned, of all steps.
        slopes: of its results.
        wanted: whether the gradients of the weight, the bias and the first state are asked for.

    Raises:
        RuntimeError: if the sizes do not go together.
    """
    if all(slope is None for slope in slopes):
        return None
    _check(course.gates, layer)
    _check_course(course, slopes)
    weight, bias, out = wanted
    found = Gradients(
        torch.empty_like(course.gates),
        torch.empty_like(layer.weight, memory_format=torch.contiguous_format) if weight else None,
        layer.weight.new_empty(layer.weight.shape[0]) if bias else None,
        course.cells.new_empty(layer.out.shape),
        course.cells.new_empty(layer.out.shape),
        out,
    )
    dense = Course(*(each.contiguous() for each in course))
    backend_of(course.cells).lstm_gradient(_contiguous(layer), dense, _dense_slopes(slopes), found)
    return found


def _contiguous(layer: Layer) -> Layer:
    bias = None if layer.bias is None else layer.bias.contiguous()
    weight, out, cell = layer.weight.contiguous(), layer.out.contiguous(), layer.cell.contiguous()
    return Layer(weight, bias, out, cell, layer.is_reversed)


def _dense_slopes(slopes: Slopes) -> Slopes:
    out, *last = slopes
    if out is not None and out.stride(2) != 1:
        out = out.contiguous()
    return Slopes(out, *(None if each is None else each.contiguous() for each in last))


def _check(x: Tensor, layer: Layer) -> None:
    """Check the dtypes and sizes, since a kernel would read other memory."""
    tensors = [each for each in (x, *layer[:4]) if each is not None]
    if x.dtype not in REAL or any((each.dtype, each.device) != (x.dtype, x.device) for each in tensors):
        raise RuntimeError(
            f"the steps of an LSTM got {[f'{each.dtype} on {each.device}' for each in tensors]}"
        )
    steps, batch, gates = x.shape
    size = gates // 4
    bias = layer.bias is None or layer.bias.shape == (gates,)
    states = layer.out.shape == layer.cell.shape == (batch, size)
    if not (x.numel() and gates == 4 * size and layer.weight.shape == (gates, size) and bias and states):
        given = [None if each is None else list(each.shape) for each in layer[:4]]
        raise RuntimeError(f"{steps} steps of {batch} samples with {gates} gates do not go with {given}")


def _check_course(course: Course, slopes: Slopes) -> None:
    shape, last = course.cells.shape, course.cells.shape[1:]
    wanted = ((*shape[:2], 4 * shape[2]), shape, shape)
    given = ((slopes.out, shape), (slopes.last_out, last), (slopes.last_cell, last))
    if [(each.shape, each.dtype) for each in course] != [
        (size, course.gates.dtype) for size in wanted
    ] or any(
        each is not None and (each.shape != size or each.dtype is not course.gates.dtype)
        for each, size in given
    ):
        raise RuntimeError("the gradients, gates and cell states of an LSTM do not go together")
