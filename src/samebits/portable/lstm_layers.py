"""LSTMs in portable mode: all steps of a layer and direction at once, with the bits of single ops.

torch makes `lstm` of a dozen ops for each step, and its gradient of three dozen. Here it is a product of all
inputs with their weight, as torch has it, and then one op of our own for the steps (lstm_ops.py). What that
does not compute is left to torch: projections, packed sequences (another op), other dtypes, subclasses, and
tensors that `torch.func`, a tracer or forward mode follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from samebits._torch.autograd_kernels import has_tangent, in_transform
from samebits._torch.portable import tracer
from samebits.portable._devices import device_types
from samebits.portable._tensors import REAL
from samebits.portable.lstm_gradients import Inputs, State, do_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

_PLAIN = (torch.Tensor, torch.nn.Parameter)


OP = "lstm.input"
"""The name of the op that is computed here, without `aten::`."""


def run_or(otherwise: Callable[[], Any], *args: Any) -> Any:
    """Run the op.

    Args:
        otherwise: called for what is left to torch.
        *args: of the op.
    """
    call = _Call(*args)
    return _run(call) if _is_ours(call) else otherwise()


class _Call(NamedTuple):
    """The arguments of `aten::lstm.input`."""

    x: Tensor
    hx: Sequence[Tensor]
    params: Sequence[Tensor]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool

    @property
    def ways(self) -> int:
        """Return in how many directions a layer goes."""
        return 2 if self.bidirectional else 1

    def weights(self, at: int) -> Sequence[Tensor]:
        """Return those of a layer and direction: of inputs and of the state, then the biases, if any."""
        each = 4 if self.has_biases else 2
        return self.params[at * each : (at + 1) * each]


def _is_ours(call: _Call) -> bool:
    """Tell whether the steps can be done at once here; where sizes do not go together, torch says so."""
    tensors = (call.x, *call.hx, *call.params)
    device = call.x.device
    if any(
        type(each) not in _PLAIN or each.device != device or each.layout is not torch.strided
        for each in tensors
    ):
        return False
    if device.type not in device_types() or call.x.dtype not in REAL:
        return False
    if any(each.dtype is not call.x.dtype for each in tensors):
        return False
    if torch.is_autocast_enabled(device.type) or in_transform() or tracer() is not None:
        return False
    if any(each.is_neg() or each._is_zerotensor() or has_tangent(each) for each in tensors):
        return False
    return _fits(call)


def _fits(call: _Call) -> bool:
    if len(call.hx) != 2 or call.x.dim() != 3 or call.hx[0].dim() != 3 or not call.x.numel():
        return False
    size, parts = call.hx[0].shape[2], call.num_layers * call.ways
    states = (parts, call.x.shape[0 if call.batch_first else 1], size)
    if not size or any(state.shape != states for state in call.hx):
        return False
    wanted: list[tuple[int, ...]] = []
    for part in range(parts):
        inputs = call.x.shape[2] if part < call.ways else call.ways * size
        wanted += [(4 * size, inputs), (4 * size, size), *[(4 * size,)] * (2 * call.has_biases)]
    return [tuple(each.shape) for each in call.params] == wanted


def _run(call: _Call) -> tuple[Tensor, Tensor, Tensor]:
    """Return the results and the last states, made as torch makes them but for the steps."""
    x = call.x.transpose(0, 1) if call.batch_first else call.x
    firsts = list(zip(call.hx[0].unbind(0), call.hx[1].unbind(0), strict=True))
    lasts: list[tuple[Tensor, Tensor]] = []
    for layer in range(call.num_layers):
        results = []
        for way in range(call.ways):
            at = layer * call.ways + way
            result, *last = _run_way(x, call.weights(at), firsts[at], way == 1)
            results.append(result)
            lasts.append((last[0], last[1]))
        x = torch.cat(results, 2) if call.bidirectional else results[0]
        if call.dropout != 0 and call.train and layer < call.num_layers - 1:
            x = torch.dropout(x, call.dropout, True)
    outs, cells = (torch.stack(each, 0) for each in zip(*lasts, strict=True))
    return x.transpose(0, 1) if call.batch_first else x, outs, cells


def _run_way(
    x: Tensor,
    weights: Sequence[Tensor],
    first: tuple[Tensor, Tensor],
    is_reversed: bool,  # noqa: FBT001
) -> tuple[Tensor, Tensor, Tensor]:
    of_x, of_state, *biases = weights
    x_bias, bias = biases or (None, None)
    return do_steps(Inputs(x, of_x, x_bias), State(of_state, bias, *first), is_reversed=is_reversed)
