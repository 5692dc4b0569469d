"""Random values of distributions, gamma's among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from samebits.portable._refusals import refuse_use
from samebits.portable._registry import declares_handlers, handles, rounds_itself
from samebits.portable.kernels import random as kernels
from samebits.portable.kernels.elementwise import sqrt, unary
from samebits.portable.ops.random import (
    PLAIN_OVERLOADS,
    compute_dtype,
    functional,
    into_out,
    judge,
    made_by,
    needs_values,
    next_key,
    store,
    with_overloads,
    work_like,
)

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable._registry import Handler, Table


@handles("aten::normal_")
@rounds_itself
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Compute `aten::normal_`."""
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if not needs_values(self):
        return self
    work = work_like(self, compute_dtype(self))
    kernels.normal_into(work, next_key(generator), mean, std)
    return store(self, work)


@handles("aten::normal.Tensor_Tensor", "aten::normal.Tensor_float", "aten::normal.float_Tensor")
@rounds_itself
def normal_of(mean: Tensor | float, std: Tensor | float = 1, *, generator: Any = None) -> Tensor:
    """Compute `aten::normal` with a tensor for the mean, the standard deviation, or both."""
    tensors = [value for value in (mean, std) if isinstance(value, torch.Tensor)]
    if isinstance(std, torch.Tensor) and std.numel() and not bool((std >= 0).all()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = np.broadcast_shapes(*(tuple(tensor.shape) for tensor in tensors))
    out = torch.empty(shape, dtype=tensors[0].dtype, device=tensors[0].device)
    work = torch.empty(shape, dtype=compute_dtype(out), device=out.device)
    if not needs_values(out):
        return out
    kernels.normal_into(work, next_key(generator), 0.0, 1.0)
    scale, shift = (v.to(work.dtype) if isinstance(v, torch.Tensor) else v for v in (std, mean))
    return store(out, (work * scale) + shift) if out.dtype != work.dtype else (work * scale) + shift


@handles("aten::normal.float_float")
@rounds_itself
def normal_sized(mean: float, std: float, size: Any, *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::normal.float_float`."""
    return normal_(torch.empty(size, **options), mean, std, generator=generator)


def _checked(self: Tensor, name: str, *parameters: float) -> bool:
    getattr(torch.empty(0, dtype=self.dtype, device="cpu"), name)(*parameters, generator=judge())
    return needs_values(self)


@handles("aten::exponential_")
@rounds_itself
def exponential_(self: Tensor, lambd: float = 1, *, generator: Any = None) -> Tensor:
    """Compute `aten::exponential_`."""
    if not _checked(self, "exponential_", lambd):
        return self
    work = work_like(self, compute_dtype(self))
    kernels.exponential_into(work, next_key(generator), lambd)
    return store(self, work)


@handles("aten::log_normal_")
@rounds_itself
def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Any = None) -> Tensor:
    """Compute `aten::log_normal_`."""
    if not _checked(self, "log_normal_", mean, std):
        return self
    work = torch.empty(self.shape, dtype=compute_dtype(self), device=self.device)
    kernels.normal_into(work, next_key(generator), mean, std)
    return self.copy_(unary("exp", work))


@handles("aten::cauchy_")
@rounds_itself
def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Tensor:
    """Compute `aten::cauchy_`: the quotient of two normal values."""
    if not _checked(self, "cauchy_", median, sigma):
        return self
    pairs = torch.empty((self.numel(), 2), dtype=compute_dtype(self), device=self.device)
    kernels.normal_into(pairs, next_key(generator), 0.0, 1.0)
    return self.copy_(((pairs[:, 1] / pairs[:, 0]) * sigma + median).view(self.shape))


@handles("aten::geometric_")
@rounds_itself
def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Compute `aten::geometric_`: the number of trials up to the first success."""
    if not _checked(self, "geometric_", p):
        return self
    waits = torch.empty(self.shape, dtype=torch.float64, device=self.device)
    kernels.exponential_into(waits, next_key(generator), 1.0)
    rate = -unary("log1p", torch.tensor([-p], dtype=torch.float64, device=self.device))
    return self.copy_((waits / rate).ceil().clamp_(min=1))


@handles("aten::multinomial")
@rounds_itself
def multinomial(
    self: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Compute `aten::multinomial`."""
    weights = self.double() if self.dtype == torch.float64 else self.float()
    _check_multinomial(weights, num_samples, replacement)
    rows = weights.reshape(-1, self.shape[-1])
    if num_samples == 1 or not replacement:
        drawn = _race(rows, num_samples, generator)
    else:
        drawn = _from_cumulated(rows, num_samples, generator)
    return drawn.view(*self.shape[:-1], num_samples)


def _check_multinomial(weights: Tensor, count: int, replacement: bool) -> None:
    """Raise what torch raises, for weights of any size."""
    if weights.dim() not in {1, 2}:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not bool(((weights >= 0) & weights.isfinite()).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if weights.numel() and not bool((weights > 0).any(dim=-1).all()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _race(rows: Tensor, count: int, generator: Any) -> Tensor:
    """Return the indices of the exponential clocks, of rate `weight` each, that ring first, in order."""
    waits = torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)
    kernels.exponential_into(waits, next_key(generator), 1.0)
    # A clock of rate 0 never rings: it has inf, which comes last.
    return kernels.order(waits / rows)[:, :count].contiguous()


def _from_cumulated(rows: Tensor, count: int, generator: Any) -> Tensor:
    u = torch.empty((rows.shape[0], count), dtype=torch.float64, device=rows.device)
    kernels.uniform_into(u, next_key(generator), 0.0, 1.0, torch.float64)
    sums = kernels.cumulated(rows.double())
    return torch.searchsorted(sums, u * sums[:, -1:], right=True)


@handles("aten::rrelu_with_noise_")
@rounds_itself
def rrelu_with_noise_(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """Compute `aten::rrelu_with_noise_`."""
    return self.copy_(rrelu_with_noise(self, noise, lower, upper, training, generator))


@handles("aten::rrelu_with_noise")
@rounds_itself
def rrelu_with_noise(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """Compute `aten::rrelu_with_noise`, which writes the slopes into `noise`."""
    x = self.to(compute_dtype(self))
    if not training:
        return torch.where(x > 0, x, x * ((lower + upper) / 2)).to(self.dtype)
    slopes = torch.empty(self.shape, dtype=x.dtype, device=x.device)
    if needs_values(slopes):
        kernels.uniform_into(slopes, next_key(generator), lower, upper, x.dtype)
    slopes = torch.where(x <= 0, slopes, torch.ones_like(slopes))
    noise.copy_(slopes)
    return (x * slopes).to(self.dtype)


@handles("aten::rrelu_with_noise_functional")
@rounds_itself
def rrelu_with_noise_functional(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Compute `aten::rrelu_with_noise_functional`."""
    self, noise, *rest = args
    filled = noise.clone()
    return rrelu_with_noise(self, filled, *rest, **kwargs), filled


def _copied(handler: Handler) -> Handler:
    def into(*args: Any, out: Tensor, **kwargs: Any) -> Tensor:
        value = handler(*args, **kwargs)
        return out.resize_(value.shape).copy_(value)

    return into


@declares_handlers
def _made_of_fillings() -> Table:
    tensors = ("Tensor_Tensor", "Tensor_float", "float_Tensor")
    handlers: dict[str, Handler] = {
        **{f"aten::normal.{name}_out": _copied(normal_of) for name in tensors},
        "aten::normal_functional": functional(normal_),
        "aten::normal.float_float_out": into_out(normal_sized),
        **with_overloads("aten::randn", made_by(normal_), PLAIN_OVERLOADS),
        **with_overloads("aten::randn_like", made_by(normal_, torch.empty_like), PLAIN_OVERLOADS),
        "aten::exponential": functional(exponential_),
        "aten::log_normal": functional(log_normal_),
        "aten::cauchy": functional(cauchy_),
        "aten::geometric": functional(geometric_),
    }
    return {name: rounds_itself(handler) for name, handler in handlers.items()}


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
    power = unary("exp", -kernels.exponential_stream(alpha, key, 1) / alpha)
    d = raised - 1 / 3
    c = 1 / sqrt(d * 9)
    waiting, turn = (d > 0) & (d < torch.inf), 1
    value = torch.where(d <= 0, torch.nan, torch.where(waiting, torch.zeros_like(d), d))
    while bool(waiting.any()):
        z = kernels.normal_stream(d, key, 2 * turn)
        limit = -kernels.exponential_stream(d, key, 2 * turn + 1)
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
        raise refuse_use("poisson", f"of a rate above {_LARGEST_RATE}")
    out = torch.empty_like(self)
    if not needs_values(out):
        return out
    rate, key = self.double().reshape(-1), next_key(generator)
    count, time, turn = torch.zeros_like(rate), torch.zeros_like(rate), 1
    while True:
        time = time + kernels.exponential_stream(rate, key, turn)
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
        raise refuse_use(
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
        time = time + kernels.exponential_stream(clocks, key, turn) / left
        within = (time <= limit) & (left > 0) & (drawn == turn - 1)
        if not bool(within.any()):
            return drawn
        drawn, turn = drawn + within, turn + 1
