"""The loss of classes in images, and the gradient of the CTC loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from samebits.deterministic_kernels.precision import exact_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

_NONE, _MEAN = 0, 1
_NEVER = -math.inf


def image_class_loss(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return the negative log likelihood of images, and the sum of the weights.

    Args:
        self: logarithms of probabilities: (images, classes, height, width).
        target: the class at each pixel: int64 of (images, height, width).
        weight: of each class; all count alike without it.
        reduction: 0 for a loss for each pixel, 1 for the mean, 2 for the sum.
        ignore_index: pixels of this class do not count.
    """
    counts = target != ignore_index
    index = torch.where(counts, target, 0)
    picked = self.gather(1, index.unsqueeze(1)).squeeze(1)
    ones = torch.ones((), dtype=self.dtype, device=self.device)
    weights = torch.where(counts, ones if weight is None else weight[index], 0)
    losses = torch.where(counts, -picked * weights, 0)
    if reduction == _NONE:
        return losses, self.new_zeros(())
    exact = exact_dtype(self.dtype)
    total, share = losses.sum(dtype=exact), weights.sum(dtype=exact)
    result = total / share if reduction == _MEAN else total
    return result.to(self.dtype), share.to(self.dtype)


def ctc_gradient(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[int] | Tensor,
    target_lengths: Sequence[int] | Tensor,
    *rest: Any,
) -> Tensor:
    """Return the gradient of the CTC loss.

    The states of a sample are a blank, its first label, a blank, its second label, ..., a blank.

    Args:
        grad: of the losses: (samples).
        log_probs: logarithms of probabilities: (times, samples, classes).
        targets: labels: (samples, labels), or all in a row.
        input_lengths: times of each sample.
        target_lengths: labels of each sample.
        *rest: the losses, the logarithms of the probabilities of states up to each time, the class of blank,
            and whether infinite losses count as 0.
    """
    loss, log_alpha, blank, zero_infinity = (*rest, False)[:4]
    device = log_probs.device
    times = torch.as_tensor(input_lengths, dtype=torch.int64, device=device)
    counts = torch.as_tensor(target_lengths, dtype=torch.int64, device=device)
    labels = _labels(targets.to(torch.int64), counts, (log_alpha.shape[2] - 1) // 2, blank)
    classes = torch.full((len(labels), log_alpha.shape[2]), blank, dtype=torch.int64, device=device)
    classes[:, 1::2] = labels
    emitted = log_probs.gather(2, classes.expand(len(log_probs), -1, -1))
    log_beta = _backwards(emitted, classes, (times, 2 * counts))
    both = log_alpha.transpose(0, 1) + log_beta
    shares = torch.exp(both + loss.unsqueeze(1) - emitted)
    # torch leaves what it knows of states that a sample does not have unwritten.
    shares = torch.where(torch.isneginf(log_beta) | torch.isneginf(both), 0, shares)
    slopes = (torch.exp(log_probs) - _by_class(shares, labels, blank, log_probs)) * grad.view(1, -1, 1)
    lost = torch.isposinf(loss).view(1, -1, 1)
    slopes = torch.where(lost, 0.0 if zero_infinity else math.nan, slopes)
    time = torch.arange(len(log_probs), device=device).view(-1, 1, 1)
    return torch.where(time < times.view(1, -1, 1), slopes, 0)


def _labels(targets: Tensor, counts: Tensor, longest: int, blank: int) -> Tensor:
    """Return the labels as (samples, labels), with blanks behind."""
    at = torch.arange(longest, device=targets.device).unsqueeze(0)
    if targets.dim() == 1:
        starts = (torch.cumsum(counts, 0) - counts).unsqueeze(1)
        inside = (starts + at).clamp(max=max(len(targets) - 1, 0))
        labels = targets[inside] if len(targets) else torch.full_like(inside, blank)
    else:
        labels = targets[:, :longest]
    return torch.where(at < counts.unsqueeze(1), labels, blank)


def _backwards(emitted: Tensor, classes: Tensor, ends: tuple[Tensor, Tensor]) -> Tensor:
    """Return the logarithms of the probabilities from each time on: (times, samples, states).

    Args:
        emitted: the logarithm of the probability of each state's class at each time.
        classes: of the states.
        ends: the times of each sample, and its last state.
    """
    times, last = (each.unsqueeze(1) for each in ends)
    state = torch.arange(classes.shape[1], device=classes.device).unsqueeze(0)
    exists, ending = state <= last, (state == last) | (state == last - 1)
    skips = torch.zeros_like(exists)
    skips[:, :-2] = classes[:, :-2] != classes[:, 2:]  # which blanks never are
    start = torch.where(ending, 0.0, _NEVER).to(emitted.dtype)
    # Two more states, which nothing reaches, stand for the neighbours of the last ones.
    beta = emitted.new_full((len(classes), classes.shape[1] + 2), _NEVER)
    out = torch.empty_like(emitted)
    for time in range(len(emitted) - 1, -1, -1):
        two = torch.where(skips, beta[:, 2:], _NEVER)
        after = torch.logaddexp(torch.logaddexp(beta[:, :-2], beta[:, 1:-1]), two)
        after = torch.where(times == time + 1, start, after)
        beta[:, :-2] = torch.where(exists & (time < times), after + emitted[time], _NEVER)
        out[time] = beta[:, :-2]
    return out


def _by_class(shares: Tensor, labels: Tensor, blank: int, like: Tensor) -> Tensor:
    """Add the shares of states up for each class: (times, samples, classes)."""
    # A product with ones and zeros adds in an order that the shapes decide.
    chosen = torch.nn.functional.one_hot(labels, like.shape[2]).to(like.dtype)
    out = torch.bmm(shares[:, :, 1::2].transpose(0, 1), chosen).transpose(0, 1).contiguous()
    out[:, :, blank] += shares[:, :, 0::2].sum(2)
    return out


KERNELS: Mapping[str, Callable[..., object]] = {
    "nll_loss2d_forward": image_class_loss,
    "_ctc_loss_backward": ctc_gradient,
    "_ctc_loss_backward.Tensor": ctc_gradient,
}
"""By name of the op; its form that writes into given tensors is computed by the same function."""
