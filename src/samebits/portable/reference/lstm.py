"""The steps of one layer and direction of an LSTM, one operation after the other.

See "Layers that are compositions" in docs/reference/portable-numerics.md. Steps come in the order in which
the layer goes through them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from samebits.portable.reference.contractions import gemm
from samebits.portable.reference.elementary import binary, unary
from samebits.portable.reference.reductions import sum_over

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


class Layer(NamedTuple):
    """Weight of the state (4H, H), bias (4H) or None, the first state and cell state (N, H)."""

    weight: Array
    bias: Array | None
    out: Array
    cell: Array


class Step(NamedTuple):
    """What becomes of it at a step: the result, the gates i, f, g, o, the cell state and its tanh."""

    out: Array
    gates: Array
    cell: Array
    tanh_cell: Array


class Slopes(NamedTuple):
    """Gradients of the results (T, N, H), of the last one and of the last cell state (N, H), or None."""

    out: Array | None
    last_out: Array | None
    last_cell: Array | None


class Sums(NamedTuple):
    """Gradients of what the layer begins with."""

    weight: Array
    bias: Array
    out: Array
    cell: Array


def run(x: Array, layer: Layer) -> list[Step]:
    """Go through all steps.

    Args:
        x: what the inputs give to the gates (T, N, 4H).
        layer: of the same dtype.
    """
    course: list[Step] = []
    out, cell = layer.out, layer.cell
    for each in x:
        product = gemm(out, layer.weight.T)
        with np.errstate(all="ignore"):
            added = product if layer.bias is None else product + layer.bias
            course.append(_step(added + each, cell))
        out, cell = course[-1].out, course[-1].cell
    return course


def _step(gates: Array, before: Array) -> Step:
    kept, forgotten, new, shown = np.split(gates, 4, 1)
    i, f, o = (unary("sigmoid", each) for each in (kept, forgotten, shown))
    g = unary("tanh", new)
    with np.errstate(all="ignore"):
        cell = f * before + i * g
    return kept_step(np.concatenate([i, f, g, o], 1), cell, unary("tanh", cell))


def kept_step(gates: Array, cell: Array, tanh_cell: Array) -> Step:
    """Return a step of which all but the result is known."""
    with np.errstate(all="ignore"):
        return Step(np.split(gates, 4, 1)[3] * tanh_cell, gates, cell, tanh_cell)


def gradients(layer: Layer, course: list[Step], slopes: Slopes) -> tuple[list[Array], Sums]:
    """Return the gradients of what the inputs gave, for each step, and of the layer.

    Args:
        layer: the argument of `run`.
        course: what it returned.
        slopes: not all of them None.
    """
    states = [(layer.out, layer.cell), *((step.out, step.cell) for step in course)]
    weight, bias = np.zeros_like(layer.weight), np.zeros_like(layer.weight[:, 0])
    of_x: list[Array] = []
    before: tuple[Array | None, Array | None] = slopes.last_out, slopes.last_cell
    for number in reversed(range(len(course))):
        out, cell = states[number]
        of_next, of_cell = before
        slope = of_next if slopes.out is None else _sum(slopes.out[number], of_next)
        of_gates, of_cell = _step_gradient(course[number], cell, slope, of_cell)
        of_x.insert(0, of_gates)
        before = gemm(of_gates, layer.weight), of_cell
        with np.errstate(all="ignore"):
            weight = weight + gemm(of_gates.T, out)
            bias = bias + sum_over(of_gates, [0])
    return of_x, Sums(weight, bias, *map(_sum, before))


def _sum(*terms: Array | None) -> Array:
    """Return the sum of those that are there."""
    with np.errstate(all="ignore"):
        return functools.reduce(np.add, [each for each in terms if each is not None])


def _step_gradient(
    step: Step, before: Array, slope: Array | None, of_cell: Array | None
) -> tuple[Array, Array]:
    """Return the gradients of the gates before their functions, and of the cell state of the step before."""
    i, f, g, o = np.split(step.gates, 4, 1)
    of_shown, through = np.zeros_like(o), None
    with np.errstate(all="ignore"):
        if slope is not None:
            of_shown = binary("sigmoid_backward", slope * step.tanh_cell, o)
            through = binary("tanh_backward", slope * o, step.tanh_cell)
        whole = _sum(of_cell, through)
        parts = [
            binary("sigmoid_backward", whole * g, i),
            binary("sigmoid_backward", whole * before, f),
            binary("tanh_backward", whole * i, g),
        ]
        return np.concatenate([*parts, of_shown], 1), whole * f
