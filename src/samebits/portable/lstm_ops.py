"""The ops of samebits for the steps of an LSTM: what recordings and dispatch modes see of them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from samebits._torch.own_ops import OwnOps
from samebits.portable.kernels import lstm

if TYPE_CHECKING:
    from torch import Tensor

    Optional = Tensor | None

_STEPS = (
    "lstm_steps(Tensor x, Tensor weight, Tensor? bias, Tensor[] first, bool reverse, bool keep)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
_GRADIENT = (
    "lstm_steps_backward(Tensor?[] slopes, Tensor weight, Tensor[] first, Tensor[] course, bool reverse,"
    " bool[3] wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)


@functools.cache
def lstm_ops() -> OwnOps:
    """Return the ops `lstm_steps` and `lstm_steps_backward`."""
    return OwnOps({_STEPS: _steps, _GRADIENT: _gradient})


def _steps(
    x: Tensor,
    weight: Tensor,
    bias: Optional,
    first: list[Tensor],
    reverse: bool,  # noqa: FBT001 - a parameter of the op
    keep: bool,  # noqa: FBT001
) -> tuple[Optional, ...]:
    """Return all results, the last one, the last cell state and, if `keep`, the course of all steps."""
    out, cell = first
    results, course = lstm.run(x, lstm.Layer(weight, bias, out, cell, reverse), keeps=keep)
    last = 0 if reverse else -1
    last_cell = course.cells[last].clone() if keep else course.cells[last]
    return results, results[last].clone(), last_cell, *(course if keep else (None, None, None))


def _gradient(
    slopes: list[Optional],
    weight: Tensor,
    first: list[Tensor],
    course: list[Tensor],
    reverse: bool,  # noqa: FBT001 - a parameter of the op
    wanted: list[bool],
) -> tuple[Optional, ...]:
    """Return the gradients of the inputs, the weight, the bias and the first states.

    `wanted` tells whether those of the weight, the bias and the first output are; else they are None.
    """
    out, cell = first
    layer = lstm.Layer(weight, None, out, cell, reverse)
    of_weight, of_bias, of_out = wanted
    found = lstm.gradients(layer, lstm.Course(*course), lstm.Slopes(*slopes), (of_weight, of_bias, of_out))
    if found is None:
        return (None,) * 5
    return found.x, found.weight, found.bias, found.out if of_out else None, found.cell
