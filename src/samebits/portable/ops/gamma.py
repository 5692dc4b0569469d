"""Gamma, Dirichlet, Poisson and binomial values: rounds over all elements, until each has its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles, rounds_itself
from samebits.portable.kernels import random as kernels
from samebits.portable.kernels.elementwise import sqrt, unary
from samebits.portable.ops.checks import refuse
from samebits.portable.ops.random import needs_values, next_key

if TYPE_CHECKING:
    from torch import Tensor


_LARGEST_RATE = 100_000  # of poisson, that takes as many rounds


@handles("aten::_standard_gamma")
@rounds_itself
def standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Compute `aten::_standard_gamma` (Marsaglia and Tsang 2000)."""
    out = torch.empty_like(self)
    if not needs_values(out):
        return out
    values = _gamma(self.double().reshape(-1), next_key(generator))
    return out.copy_(values.clamp_(min=torch.finfo(self.dtype).tiny).view(self.shape))


@handles("aten::_sample_dirichlet")
@rounds_itself
def sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    """Compute `aten::_sample_dirichlet`: gamma values divided by their sum over the last dimension."""
    out = torch.empty_like(self)
    if not needs_values(out):
        return out
    values = _gamma(self.double().reshape(-1), next_key(generator)).view(self.shape)
    shares = values / kernels.cumulated(values)[..., -1:]
    return out.copy_(shares.clamp_(min=torch.finfo(self.dtype).tiny))


def _gamma(alpha: Tensor, key: int) -> Tensor:
    small = alpha < 1
    raised = torch.where(small, alpha + 1, alpha)
    power = unary("exp", -kernels.exponential_stream(alpha.numel(), key, 1) / alpha)
    d = raised - 1 / 3
    c = 1 / sqrt(d * 9)
    waiting, turn = (d > 0) & (d < torch.inf), 1
    value = torch.where(d <= 0, torch.nan, torch.where(waiting, torch.zeros_like(d), d))
    while bool(waiting.any()):
        z = kernels.normal_stream(d.numel(), key, 2 * turn)
        limit = -kernels.exponential_stream(d.numel(), key, 2 * turn + 1)
        root = c * z + 1
        v = root * root * root
        log_v = unary("log", torch.where(v > 0, v, torch.ones_like(v)))
        taken = waiting & (v > 0) & (limit < (z * z) * 0.5 + (d - d * v) + d * log_v)
        value = torch.where(taken, d * v, value)
        waiting, turn = waiting & ~taken, turn + 1
    return torch.where(small, value * power, value)


@handles("aten::poisson")
@rounds_itself
def poisson(self: Tensor, generator: Any = None) -> Tensor:
    """Compute `aten::poisson`: the number of exponential waits that fit into the rate, a round for each."""
    if self.numel() and not bool((self >= 0).all()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if self.numel() and not bool((self <= _LARGEST_RATE).all()):
        refuse("poisson", f"of a rate above {_LARGEST_RATE}")
    out = torch.empty_like(self)
    if not needs_values(out):
        return out
    rate, key = self.double().reshape(-1), next_key(generator)
    count, time, turn = torch.zeros_like(rate), torch.zeros_like(rate), 1
    while True:
        time = time + kernels.exponential_stream(rate.numel(), key, turn)
        within = time <= rate
        if not bool(within.any()):
            return out.copy_(count.view(self.shape))
        count, turn = count + within, turn + 1


@handles("aten::binomial")
@rounds_itself
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Compute `aten::binomial`: how many of `count` exponential clocks ring in time, a round for each."""
    out = torch.empty_like(count)
    if not needs_values(out):
        return out
    n = count.double().reshape(-1).floor()
    chance = prob.double().expand(count.shape).reshape(-1)
    turned = chance > 0.5
    limit = -unary("log1p", -torch.where(turned, 1 - chance, chance))
    mean = n * torch.where(turned, 1 - chance, chance)
    if bool((~(mean <= _LARGEST_RATE) & ~chance.isnan()).any()):
        refuse(
            "binomial", f"of more than {_LARGEST_RATE} expected successes, or failures if these are fewer,"
        )
    drawn = _rings(n, limit, next_key(generator))
    value = torch.where(turned, n - drawn, drawn).clamp(min=0)
    return out.copy_(torch.where(chance.isnan(), chance, value).view(count.shape))


def _rings(clocks: Tensor, limit: Tensor, key: int) -> Tensor:
    """Return how many clocks ring before the limit: the next of the n left takes an n-th of one's time."""
    drawn, time, turn = torch.zeros_like(clocks), torch.zeros_like(clocks), 1
    while True:
        left = clocks - (turn - 1)
        time = time + kernels.exponential_stream(clocks.numel(), key, turn) / left
        within = (time <= limit) & (left > 0) & (drawn == turn - 1)
        if not bool(within.any()):
            return drawn
        drawn, turn = drawn + within, turn + 1
