"""The CTC loss ("CTC" in docs/reference/portable-numerics.md): sums over all alignments, step by step.

States of a sample: a blank, the first label, a blank, the second label, ..., a blank. Tensors of states have
the dimensions (sample, state), and hold logarithms of probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.elementwise import unary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    Lengths = Sequence[int] | Tensor

_NEVER = -float("inf")


@dataclass(frozen=True)
class _States:
    """The states of all samples of a batch.

    Args:
        classes: the class of each state; blank beyond a sample's states.
        exist: which states a sample has.
        skip: whether a state may follow the one two before it: labels differ and neither is blank.
        inputs: time steps of each sample.
        last: the last state of each sample.
    """

    classes: Tensor
    exist: Tensor
    skip: Tensor
    inputs: Tensor
    last: Tensor


@handles("aten::_ctc_loss", "aten::_ctc_loss.Tensor")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """Compute `aten::_ctc_loss`: minus the log probability of each target, and of the states at each time."""
    states = _states_of(log_probs, targets, input_lengths, target_lengths, blank)
    position = _numbers(states.classes.shape[1], log_probs).unsqueeze(0)
    alpha = torch.full(states.classes.shape, _NEVER, dtype=log_probs.dtype, device=log_probs.device)
    steps = []
    for time in range(log_probs.shape[0]):
        before = _after(alpha, states.skip, 1) if time else torch.where(position < 2, 0.0, alpha)
        alive = states.exist & (time < states.inputs).unsqueeze(1)
        alpha = torch.where(alive, torch.add(before, _emitted(log_probs, time, states)), _NEVER)
        steps.append(alpha)
    log_alpha = torch.stack(steps, 1) if steps else alpha.unsqueeze(1)[:, :0]
    return torch.neg(_log_likelihood(log_alpha, states)), log_alpha


@handles("aten::_ctc_loss_backward", "aten::_ctc_loss_backward.Tensor")
def ctc_loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Tensor:
    """Compute `aten::_ctc_loss_backward`."""
    states = _states_of(log_probs, targets, input_lengths, target_lengths, blank)
    shares = _shares(log_probs, neg_log_likelihood, log_alpha, states)
    expected = torch.zeros_like(log_probs)
    for state in range(shares.shape[2]):  # ascending: the order in which shares of a class are added
        index = states.classes[:, state].view(1, -1, 1).expand(log_probs.shape[0], -1, 1)
        value = torch.add(expected.gather(2, index), shares[:, :, state].t().unsqueeze(2))
        expected.scatter_(2, index, value)
    slopes = torch.mul(torch.sub(unary("exp", log_probs), expected), grad.view(1, -1, 1))
    lost = torch.isinf(neg_log_likelihood).view(1, -1, 1)
    slopes = torch.where(lost, 0.0 if zero_infinity else float("nan"), slopes)
    time = _numbers(log_probs.shape[0], log_probs).view(-1, 1, 1)
    return torch.where(time < states.inputs.view(1, -1, 1), slopes, 0.0)


def _shares(log_probs: Tensor, loss: Tensor, log_alpha: Tensor, states: _States) -> Tensor:
    """Return the probability of each state at each time, given the target: (sample, time, state)."""
    position = _numbers(states.classes.shape[1], log_probs).unsqueeze(0)
    ends = (position == states.last.unsqueeze(1)) | (position == states.last.unsqueeze(1) - 1)
    beta = torch.full(states.classes.shape, _NEVER, dtype=log_probs.dtype, device=log_probs.device)
    steps = []
    for time in range(log_probs.shape[0] - 1, -1, -1):
        ending = torch.eq(states.inputs, time + 1).unsqueeze(1)
        after = _after(beta, _skip_ahead(states.skip), -1)
        after = torch.where(ending, torch.where(ends, 0.0, _NEVER), after)
        emitted = _emitted(log_probs, time, states)
        alive = states.exist & (time < states.inputs).unsqueeze(1)
        beta = torch.where(alive, torch.add(after, emitted), _NEVER)
        both = torch.add(log_alpha[:, time], beta)
        share = unary("exp", torch.sub(torch.add(both, loss.unsqueeze(1)), emitted))
        steps.append(torch.where(torch.eq(both, _NEVER), 0.0, share))
    return torch.stack(steps[::-1], 1) if steps else torch.zeros_like(log_alpha)


def _after(values: Tensor, skip: Tensor, direction: int) -> Tensor:
    """Return log(sum) of each state, its neighbour before it, and where `skip` the one before that."""
    one = _shifted(values, direction)
    two = torch.where(skip, _shifted(one, direction), _NEVER)
    top = torch.maximum(torch.maximum(values, one), two)
    top = torch.where(torch.eq(top, _NEVER), 0.0, top)
    parts = [unary("exp", torch.sub(part, top)) for part in (values, one, two)]
    return torch.add(unary("log", torch.add(torch.add(parts[0], parts[1]), parts[2])), top)


def _shifted(values: Tensor, direction: int) -> Tensor:
    """Return each state's neighbour before it (1) or after it (-1); never where there is none."""
    edge = torch.full_like(values[:, :1], _NEVER)
    if direction == 1:
        return torch.cat((edge, values[:, :-1]), 1)
    return torch.cat((values[:, 1:], edge), 1)


def _skip_ahead(skip: Tensor) -> Tensor:
    """Tell whether the state two after each one may follow it."""
    return torch.cat((skip[:, 2:], torch.zeros_like(skip[:, :2])), 1)[:, : skip.shape[1]]


def _emitted(log_probs: Tensor, time: int, states: _States) -> Tensor:
    return log_probs[time].gather(1, states.classes)


def _log_likelihood(log_alpha: Tensor, states: _States) -> Tensor:
    """Return the log probability of ending in the last two states; certain for no label in no time."""
    samples = _numbers(log_alpha.shape[0], log_alpha)
    if not log_alpha.shape[1]:
        return torch.where(states.last == 0, 0.0, _NEVER).to(log_alpha.dtype)
    final = log_alpha[samples, (states.inputs - 1).clamp_(min=0)]
    blank = final[samples, states.last]
    label = torch.where(states.last > 0, final[samples, (states.last - 1).clamp_(min=0)], _NEVER)
    top = torch.maximum(blank, label)
    top = torch.where(torch.eq(top, _NEVER), 0.0, top)
    sums = torch.add(unary("exp", torch.sub(blank, top)), unary("exp", torch.sub(label, top)))
    ended = torch.add(unary("log", sums), top)
    return torch.where(states.inputs > 0, ended, torch.where(states.last == 0, 0.0, _NEVER))


def _states_of(log_probs: Tensor, targets: Tensor, inputs: Lengths, lengths: Lengths, blank: int) -> _States:
    device = log_probs.device
    counts = torch.as_tensor(lengths, dtype=torch.int64, device=device)
    steps = torch.as_tensor(inputs, dtype=torch.int64, device=device)
    _check(log_probs, steps, counts, blank)
    longest = int(counts.max()) if counts.numel() else 0
    labels = _padded(targets.to(device, torch.int64), counts, longest, blank)
    classes = torch.full((len(counts), 2 * longest + 1), blank, dtype=torch.int64, device=device)
    classes[:, 1::2] = labels
    skip = torch.zeros(classes.shape, dtype=torch.bool, device=device)
    skip[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    exist = _numbers(2 * longest + 1, counts).unsqueeze(0) <= 2 * counts.unsqueeze(1)
    return _States(classes, exist, skip & exist, steps, 2 * counts)


def _numbers(count: int, like: Tensor) -> Tensor:
    """Return 0 … count - 1 on the device of a tensor."""
    return torch.arange(count, device=like.device)


def _padded(targets: Tensor, counts: Tensor, longest: int, blank: int) -> Tensor:
    """Return the labels as (sample, label), from that or from all labels in a row."""
    position = _numbers(longest, counts).unsqueeze(0)
    if targets.dim() == 1:
        starts = (torch.cumsum(counts, 0) - counts).unsqueeze(1)
        inside = (starts + position).clamp_(max=max(len(targets) - 1, 0))
        labels = targets[inside] if len(targets) else torch.full_like(inside, blank)
    else:
        labels = targets[:, :longest]
    return torch.where(position < counts.unsqueeze(1), labels, blank)


def _check(log_probs: Tensor, steps: Tensor, counts: Tensor, blank: int) -> None:
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError("blank must be in label range")
    if len(steps) != log_probs.shape[1] or len(counts) != log_probs.shape[1]:
        raise RuntimeError("input_lengths and target_lengths must be of size batch_size")
    if bool((steps > log_probs.shape[0]).any()) or bool((steps < 0).any()):
        raise RuntimeError("Expected input_lengths to have values from 0 to the size of log_probs")
    if bool((counts < 0).any()):
        raise RuntimeError("Expected target_lengths to have value at least 0")
