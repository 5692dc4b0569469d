"""Gamma, Dirichlet and Poisson values: rounds over all elements, until each has its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.kernels import random as kernels
from samebits.portable.kernels.elementwise import unary
from samebits.portable.kernels.root import sqrt
from samebits.portable.ops.checks import refuse
from samebits.portable.ops.random import is_real
from samebits.portable.random_keys import next_key
from samebits.portable.registry import rounds_itself

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.registry import Table

_LARGEST_RATE = 100_000  # of poisson, that takes as many rounds


def standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """`aten::_standard_gamma` (Marsaglia and Tsang 2000)."""
    out = torch.empty_like(self)
    if not is_real(out):
        return out
    values = _gamma(self.double().reshape(-1), next_key(generator))
    return out.copy_(values.clamp_(min=torch.finfo(self.dtype).tiny).view(self.shape))


def sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    """`aten::_sample_dirichlet`: gamma values by their sum over the last dimension."""
    out = torch.empty_like(self)
    if not is_real(out):
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


def poisson(self: Tensor, generator: Any = None) -> Tensor:
    """`aten::poisson`: how many exponential waits fit into the rate, one round for each."""
    if self.numel() and not bool((self >= 0).all()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if self.numel() and not bool((self <= _LARGEST_RATE).all()):
        refuse("poisson", f"of a rate above {_LARGEST_RATE}")
    out = torch.empty_like(self)
    if not is_real(out):
        return out
    rate, key = self.double().reshape(-1), next_key(generator)
    count, time, turn = torch.zeros_like(rate), torch.zeros_like(rate), 1
    while True:
        time = time + kernels.exponential_stream(rate.numel(), key, turn)
        within = time <= rate
        if not bool(within.any()):
            return out.copy_(count.view(self.shape))
        count, turn = count + within, turn + 1


def table() -> Table:
    """The ops of this module."""
    ops = {"_standard_gamma": standard_gamma, "_sample_dirichlet": sample_dirichlet, "poisson": poisson}
    return {name: rounds_itself(handler) for name, handler in ops.items()}
