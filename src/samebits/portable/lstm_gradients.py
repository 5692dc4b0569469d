"""The steps of an LSTM in torch's autograd.

A gradient that is to be differentiated again consists of the ops that torch makes an LSTM of: the steps are
computed anew with these, from what went in.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from samebits._torch.autograd_kernels import below_autograd, is_wrapped, one_level, one_level_function
from samebits.portable.lstm_ops import lstm_ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Results = tuple[Tensor, Tensor, Tensor]
    """All results, the last one and the last cell state."""
    Optional = Tensor | None


class Inputs(NamedTuple):
    """The inputs of all steps (T, N, inputs), with their weight and bias."""

    x: Tensor
    weight: Tensor
    bias: Optional

    def product(self) -> Tensor:
        """Return what they give to the gates (T, N, 4H)."""
        return functional.linear(*self)


class State(NamedTuple):
    """The weight and bias of the state, the first state and the first cell state, of a layer."""

    weight: Tensor
    bias: Optional
    out: Tensor
    cell: Tensor


def do_steps(inputs: Inputs, state: State, *, is_reversed: bool) -> Results:
    """Go through all steps.

    Args:
        inputs: of the layer.
        state: of the layer and direction.
        is_reversed: whether it goes from the last step to the first.
    """
    x = inputs.product()
    tensors = [each for each in (x, *state) if each is not None]
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        with one_level():
            found: Results = _function().apply(x, *state, inputs, is_reversed)
        return found
    out, last, cell, *_ = _call(x, state, is_reversed=is_reversed, keeps=False)
    return out, last, cell


def _call(x: Tensor, state: State, *, is_reversed: bool, keeps: bool) -> tuple[Tensor, ...]:
    op, (weight, bias, *first) = lstm_ops().named("lstm_steps"), state
    with below_autograd():
        found: tuple[Tensor, ...] = op(x, weight, bias, first, is_reversed, keeps)
    return found


@functools.cache
def _function() -> Any:
    class LstmSteps(one_level_function()):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Tensor, *args: Any) -> Results:
            *state, inputs, is_reversed = args
            out, last, cell, *course = _call(x, State(*state), is_reversed=is_reversed, keeps=True)
            ctx.save_for_backward(*inputs, *state, *course)
            ctx.is_reversed = is_reversed
            ctx.set_materialize_grads(False)
            return out, last, cell

        @staticmethod
        def backward(ctx: Any, *slopes: Optional) -> tuple[Optional, ...]:
            saved = ctx.saved_tensors
            inputs, state, course = Inputs(*saved[:3]), State(*saved[3:7]), saved[7:]
            found: Sequence[Optional] = (None,) * 5
            if torch.is_grad_enabled() or any(map(is_wrapped, slopes)):
                found = _composed_gradients(ctx, inputs, state, slopes)
            elif any(slope is not None for slope in slopes):
                found = _gradients(ctx, state, course, slopes)
            return *found, None, None

    return LstmSteps


def _gradients(
    ctx: Any, state: State, course: Sequence[Tensor], slopes: Sequence[Optional]
) -> list[Optional]:
    op, (weight, _, *first) = lstm_ops().named("lstm_steps_backward"), state
    needed = ctx.needs_input_grad[:5]
    found = op(slopes, weight, first, course, ctx.is_reversed, needed[1:4])
    return [each if is_needed else None for each, is_needed in zip(found, needed, strict=True)]


def _composed_gradients(
    ctx: Any, inputs: Inputs, state: State, slopes: Sequence[Optional]
) -> Sequence[Optional]:
    """Return the gradients of the steps alone, as a graph where gradients are enabled."""
    is_graph, needed = torch.is_grad_enabled(), ctx.needs_input_grad[:5]
    with torch.enable_grad():
        x, apart = _apart(inputs.product(), needed[0]), _state_apart(state, needed[1:])
        results = compose(x, apart, is_reversed=ctx.is_reversed)
        pairs = [(result, slope) for result, slope in zip(results, slopes, strict=True) if slope is not None]
        inner = [
            each
            for each, is_needed in zip((x, *apart), needed, strict=True)
            if is_needed and each is not None
        ]
        outer, of_outer = [result for result, _ in pairs], [slope for _, slope in pairs]
        found = iter(torch.autograd.grad(outer, inner, of_outer, create_graph=is_graph, allow_unused=True))
    return [next(found) if is_needed else None for is_needed in needed]


def _state_apart(state: State, needed: Sequence[bool]) -> State:
    of_weight, of_bias, of_out, of_cell = needed
    bias = None if state.bias is None else _apart(state.bias, of_bias)
    return State(
        _apart(state.weight, of_weight), bias, _apart(state.out, of_out), _apart(state.cell, of_cell)
    )


def _apart(tensor: Tensor, is_needed: bool) -> Tensor:  # noqa: FBT001 - only called above
    """Return a tensor of its own in the graph: what comes before it there takes no part in a gradient."""
    return tensor.view_as(tensor) if is_needed else tensor.detach()


def compose(x: Tensor, state: State, *, is_reversed: bool) -> Results:
    """Go through all steps with torch's ops, those that torch makes an LSTM of.

    Args:
        x: what the inputs give to the gates (T, N, 4H).
        state: of one layer and direction.
        is_reversed: whether it goes from the last step to the first.
    """
    weight, bias, out, cell = state
    steps = x.unbind(0)
    results = []
    for each in reversed(steps) if is_reversed else steps:
        gates = functional.linear(out, weight, bias).add_(each)
        i, f, g, o = gates.unsafe_chunk(4, 1)
        i, f, g, o = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
        cell = (f * cell).add_(i * g)
        out = o * cell.tanh()
        results.append(out)
    return torch.stack(results[::-1] if is_reversed else results, 0), out, cell
