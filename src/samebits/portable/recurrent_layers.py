"""Recurrent layers and cells on a GPU, composed as torch composes them on the CPU.

On a GPU torch gives each step to one op, and does not compute what all inputs give to the gates first
(ATen/native/RNN.cpp, 2.13.0), so that values and gradients round elsewhere. For example `nn.GRU(8, 16)` is
here one product for the inputs of all steps, and then a dozen ops for each step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import linear

if TYPE_CHECKING:
    from torch import Tensor

    States = tuple[Tensor, ...]
    """The state of a layer and direction; of an LSTM that and its cell state."""


@dataclass(frozen=True)
class _Weights:
    """Of a layer and direction: for the inputs and the state; the projection of an LSTM, if it has one."""

    of_x: Tensor
    of_state: Tensor
    x_bias: Tensor | None = None
    bias: Tensor | None = None
    projection: Tensor | None = None

    def of_inputs(self, x: Tensor) -> Tensor:
        """Return what inputs give to the gates."""
        return linear(x, self.of_x, self.x_bias)

    def of_states(self, state: Tensor) -> Tensor:
        """Return what a state gives to the gates."""
        return linear(state, self.of_state, self.bias)


Step = Callable[["Tensor", "States", _Weights], "States"]
"""The next state, from what the inputs give to the gates."""


def _lstm_step(gates: Tensor, state: States, weights: _Weights) -> States:
    out, cell = state
    i, f, g, o = weights.of_states(out).add_(gates).unsafe_chunk(4, 1)
    i, f, g, o = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
    cell = (f * cell).add_(i * g)
    out = o * cell.tanh()
    return (out if weights.projection is None else out @ weights.projection.t()), cell


def _gru_step(gates: Tensor, state: States, weights: _Weights) -> States:
    (hidden,) = state
    of_x = gates.unsafe_chunk(3, 1)
    of_state = weights.of_states(hidden).unsafe_chunk(3, 1)
    reset = of_state[0].add_(of_x[0]).sigmoid_()
    update = of_state[1].add_(of_x[1]).sigmoid_()
    new = of_x[2].add(of_state[2].mul_(reset)).tanh_()
    return ((hidden - new).mul_(update).add_(new),)


def _simple_step(function: Callable[[Tensor], Tensor]) -> Step:
    def step(gates: Tensor, state: States, weights: _Weights) -> States:
        return (function(weights.of_states(state[0]).add_(gates)),)

    return step


_STEPS: dict[str, Step] = {
    "lstm": _lstm_step,
    "gru": _gru_step,
    "rnn_tanh": _simple_step(torch.tanh),
    "rnn_relu": _simple_step(torch.relu),
}
Run = Callable[["Tensor", "States", _Weights], tuple["Tensor", "States"]]
"""Goes through the steps of a layer and direction: its results, and the last state."""


def layers() -> dict[str, Callable[..., Any]]:
    """Return the ops, as functions of their arguments."""
    found: dict[str, Callable[..., Any]] = {}
    for name, step in _STEPS.items():
        found[f"{name}.input"] = functools.partial(_of_batch, step)
        found[f"{name}.data"] = functools.partial(_of_packed, step)
    return found | {
        "lstm_cell": functools.partial(_of_cell, _lstm_step),
        "gru_cell": functools.partial(_of_cell, _gru_step),
    }


def _of_cell(step: Step, x: Tensor, state: Any, *weights: Any) -> Any:
    states = tuple(state) if isinstance(state, list | tuple) else (state,)
    given = _Weights(*weights)
    found = step(given.of_inputs(x), states, given)
    return found if isinstance(state, list | tuple) else found[0]


@dataclass(frozen=True)
class _Options:
    """What the ops take after the weights."""

    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool


def _of_batch(step: Step, x: Tensor, hx: Any, params: Sequence[Tensor], *options: Any) -> tuple[Tensor, ...]:
    *given, batch_first = options
    x = x.transpose(0, 1) if batch_first else x
    runs = functools.partial(_through, step), functools.partial(_backwards_through, step)
    x, *states = _stack(runs, x, hx, params, _Options(*given))
    return (x.transpose(0, 1) if batch_first else x), *states


def _of_packed(
    step: Step, data: Tensor, batch_sizes: Tensor, hx: Any, params: Sequence[Tensor], *options: Any
) -> tuple[Tensor, ...]:
    sizes = batch_sizes.tolist()
    runs = (
        functools.partial(_through_packed, step, sizes),
        functools.partial(_backwards_through_packed, step, sizes),
    )
    return _stack(runs, data, hx, params, _Options(*options))


def _stack(
    runs: tuple[Run, Run], x: Tensor, hx: Any, params: Sequence[Tensor], options: _Options
) -> tuple[Tensor, ...]:
    """Go through all layers; the results of the last one, and the last states of all."""
    firsts = list(zip(*(each.unbind(0) for each in _listed(hx)), strict=True))
    ways = 2 if options.bidirectional else 1
    lasts: list[States] = []
    for layer in range(options.num_layers):
        results = []
        for way in range(ways):
            at = layer * ways + way
            result, last = runs[way](x, firsts[at], _weights(params, at, firsts[at], options))
            results.append(result)
            lasts.append(last)
        x = torch.cat(results, -1) if options.bidirectional else results[0]
        if options.dropout != 0 and options.train and layer < options.num_layers - 1:
            x = torch.dropout(x, options.dropout, True)
    return x, *(torch.stack(each, 0) for each in zip(*lasts, strict=True))


def _listed(hx: Any) -> Sequence[Tensor]:
    return hx if isinstance(hx, list | tuple) else [hx]


def _weights(params: Sequence[Tensor], at: int, first: States, options: _Options) -> _Weights:
    """Return those of a layer and direction: two, two biases if there are some, perhaps a projection."""
    is_projected = len(first) > 1 and first[0].shape[-1] != first[1].shape[-1]
    each = 2 + 2 * options.has_biases + is_projected
    if len(params) != each * options.num_layers * (2 if options.bidirectional else 1):
        raise RuntimeError(f"{len(params)} weights do not go with {options.num_layers} layers of {each}")
    given = params[at * each : (at + 1) * each]
    x_bias, bias = given[2:4] if options.has_biases else (None, None)
    return _Weights(given[0], given[1], x_bias, bias, given[-1] if is_projected else None)


def _through(step: Step, x: Tensor, state: States, weights: _Weights) -> tuple[Tensor, States]:
    return _go(step, weights.of_inputs(x).unbind(0), state, weights)


def _backwards_through(step: Step, x: Tensor, state: States, weights: _Weights) -> tuple[Tensor, States]:
    return _go(step, weights.of_inputs(x).unbind(0), state, weights, backwards=True)


def _go(
    step: Step, gates: Sequence[Tensor], state: States, weights: _Weights, *, backwards: bool = False
) -> tuple[Tensor, States]:
    if not gates:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    results = []
    for each in reversed(gates) if backwards else gates:
        state = step(each, state, weights)
        results.append(state[0])
    return torch.stack(results[::-1] if backwards else results, 0), state


def _through_packed(
    step: Step, sizes: list[int], x: Tensor, state: States, weights: _Weights
) -> tuple[Tensor, States]:
    """Samples are in the order of their lengths: the last ones end first."""
    ended: list[States] = []
    results = []
    for gates in torch.split(weights.of_inputs(x), sizes):
        count = gates.shape[0]
        if count < state[0].shape[0]:
            ended.append(tuple(each[count:] for each in state))
            state = tuple(each[:count] for each in state)
        state = step(gates, state, weights)
        results.append(state[0])
    ended.append(state)
    lasts = tuple(torch.cat(each, 0) for each in zip(*reversed(ended), strict=True))
    return torch.cat(results, 0), lasts


def _backwards_through_packed(
    step: Step, sizes: list[int], x: Tensor, first: States, weights: _Weights
) -> tuple[Tensor, States]:
    """The longest samples begin, the others join them."""
    state = tuple(each[: sizes[-1]] for each in first)
    results = []
    for gates in reversed(torch.split(weights.of_inputs(x), sizes)):
        known, count = state[0].shape[0], gates.shape[0]
        if count > known:
            pairs = zip(state, first, strict=True)
            state = tuple(torch.cat([old, new[known:count]], 0) for old, new in pairs)
        state = step(gates, state, weights)
        results.append(state[0])
    return torch.cat(results[::-1], 0), state
