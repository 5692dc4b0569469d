"""Gradients of gamma and Dirichlet values by the parameters of their distributions.

With F the distribution and f its density, the gradient of x in a is -(dF/da) / f. It is an integral below x
and also one above x. The integral of a positive function is taken, so that nothing cancels: see "Gradients of
sampled values" in docs/reference/portable-numerics.md.
"""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, NamedTuple

import torch

from samebits.portable._registry import handles
from samebits.portable.kernels.elementwise import sqrt, unary

if TYPE_CHECKING:
    from torch import Tensor

_DEPTH = 36.0  # integrals end where the integrand is e^-36 of its start
_STEPS = 12  # of Newton's method: any end near that depth will do
_TERMS = 24
_LEAST = 2.0**-1022
_DEGREE = 48  # of the Legendre polynomial whose zeros are the nodes
_DIGITS = 60
_CELLS = 400  # fine enough that each of them has one zero at most
_REFINEMENTS = 8


@handles("aten::_standard_gamma_grad")
def standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """Compute `aten::_standard_gamma_grad`."""
    alpha, x = self.to(torch.float64), output.to(torch.float64).clamp(min=_LEAST)
    low = x < 1
    one = torch.ones_like(x)
    below, above = (
        _gamma_series(alpha, torch.where(low, x, one)),
        _gamma_integral(alpha, torch.where(low, one, x)),
    )
    return torch.where(low, below, above).to(output.dtype)


def _gamma_series(alpha: Tensor, x: Tensor) -> Tensor:
    """Return the gradient for x below 1, by the power series of the distribution."""
    term = torch.ones_like(x)
    total, harmonic, slope = term, torch.zeros_like(x), torch.zeros_like(x)
    for k in range(1, _TERMS):
        term = (term * x) / (alpha + k)
        harmonic = harmonic + torch.reciprocal(alpha + k)
        total = total + term
        slope = slope + term * harmonic
    return (x / alpha) * (total * (unary("digamma", alpha + 1) - unary("log", x)) + slope)


def _gamma_integral(alpha: Tensor, x: Tensor) -> Tensor:
    """Return, for x from 1 on, x times the integral of exp(s alpha v - x expm1(s v)) (|d| + v) over v > 0."""
    d = unary("log", x) - unary("digamma", alpha)
    sign = torch.where(d < 0, -1.0, 1.0).to(torch.float64)
    end = _gamma_end(alpha, x, sign)
    total = torch.zeros_like(x)
    for node, weight in quadrature_nodes():
        v = end * node
        depth = (sign * alpha) * v - x * unary("expm1", sign * v)
        total = total + (unary("exp", depth) * (d.abs() + v)) * weight
    return (x * end) * total


def _gamma_end(alpha: Tensor, x: Tensor, sign: Tensor) -> Tensor:
    """Return the end of the integral, by Newton's method from beyond it, where the function is convex."""
    excess = (x - alpha) * sign
    root = sqrt(excess * excess + (4 * _DEPTH / 3) * x)
    near = (2 * _DEPTH) / (excess + root)
    end = torch.where((sign > 0) | (near < 1), near, (x + _DEPTH) / alpha)
    for _ in range(_STEPS):
        value = x * unary("expm1", sign * end) - (sign * alpha) * end - _DEPTH
        slope = sign * (x * unary("exp", sign * end) - alpha)
        end = end - value / slope
    return end


class _Beta(NamedTuple):
    """One of two integrals over v > 0: of exp(-p v) r(v) (d + …), r = ((1 - y e^-v) / (1 - y))^(q - 1).

    Args:
        p: the parameter of the side that is integrated.
        q: the other one.
        y: the value on that side.
        rest: 1 - y.
        d: the factor at the start; positive but near the ends of (0, 1).
        tail: the limit of the factor, with 1 / p for v.
        lower: whether it is the integral below x: there … is v, else the logarithm of r's base.
    """

    p: Tensor
    q: Tensor
    y: Tensor
    rest: Tensor
    d: Tensor
    tail: Tensor
    lower: Tensor


@handles("aten::_dirichlet_grad")
def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """Compute `aten::_dirichlet_grad`: the gradient by 1 - x, as torch's formula takes it."""
    dtype = x.dtype
    x, alpha, total = (value.to(torch.float64) for value in (x, alpha, total))
    value, lower = _beta_integral(_side(x, alpha, total)), _is_lower(x, alpha, total)
    return torch.where(lower, (x * value) / (1 - x), value).to(dtype)


def _mean(alpha: Tensor, total: Tensor) -> Tensor:
    """Return the mean of the logarithm of a value."""
    return unary("digamma", alpha) - unary("digamma", total)


def _is_lower(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """Tell whether to integrate below x: it is below the mean logarithm, or near a pole of the density."""
    to_zero = (alpha < 1) & (x * total < 1)
    to_one = (total - alpha < 1) & ((1 - x) * total < 1)
    below = unary("log", x) < _mean(alpha, total)
    return torch.where(to_zero & to_one, x < 0.5, (below | to_zero) & ~to_one)


def _side(x: Tensor, alpha: Tensor, total: Tensor) -> _Beta:
    lower, log = _is_lower(x, alpha, total), unary("log", x.clamp(min=_LEAST))
    mean, beta, rest = _mean(alpha, total), total - alpha, 1 - x
    return _Beta(
        torch.where(lower, alpha, beta),
        torch.where(lower, beta, alpha),
        torch.where(lower, x, rest),
        torch.where(lower, rest, x),
        torch.where(lower, mean - log, log - mean),
        torch.where(lower, _mean(alpha + 1, total) - log, -mean),
        lower,
    )


def _beta_integral(side: _Beta) -> Tensor:
    p, power = side.p, side.q - 1
    last = -unary("log1p", -side.y)
    flat = p < 1  # there the limit of the integrand is taken out, and integrated without nodes
    level = torch.where(flat, unary("exp", power * last), 0.0)
    end = torch.where(flat, _DEPTH, _beta_end(side, power, last))
    total = torch.zeros_like(p)
    for node, weight in quadrature_nodes():
        v = end * node
        base = _base(side, v)
        near = unary("exp", power * base - p * v) * (side.d + torch.where(side.lower, v, base))
        far = (unary("exp", -p * v) * level) * (side.d + torch.where(side.lower, v, last))
        total = total + torch.where(flat, near - far, near) * weight
    return end * total + torch.where(flat, (level * side.tail) / p, 0.0)


def _base(side: _Beta, v: Tensor) -> Tensor:
    """Return the logarithm of (1 - y e^-v) / (1 - y)."""
    return unary("log1p", -(side.y * unary("expm1", -v)) / side.rest)


def _beta_end(side: _Beta, power: Tensor, last: Tensor) -> Tensor:
    power = torch.where(power > 0, power, 0.0)
    end = (torch.where(power > 0, power * last, 0.0) + _DEPTH) / side.p
    for _ in range(_STEPS):
        value = side.p * end - power * _base(side, end) - _DEPTH
        decayed = side.y * unary("exp", -end)
        end = end - value / (side.p - power * (decayed / (side.rest - side.y * unary("expm1", -end))))
    return end


@functools.cache
def quadrature_nodes() -> tuple[tuple[float, float], ...]:
    """Return the nodes of Gauss and Legendre in (0, 1), ascending, each with its weight; weights sum to 1."""
    with localcontext() as context:
        context.prec = _DIGITS
        grid = [Decimal(cell) / _CELLS for cell in range(_CELLS + 1)]
        signs = [_legendre(point)[0] > 0 for point in grid]
        starts = [cell for cell in range(_CELLS) if signs[cell] != signs[cell + 1]]
        positive = [_refined((grid[cell] + grid[cell + 1]) / 2) for cell in starts]
        lower = [((1 - x) / 2, weight / 2) for x, weight in reversed(positive)]
        upper = [((1 + x) / 2, weight / 2) for x, weight in positive]
        return tuple((float(x), float(weight)) for x, weight in lower + upper)


def _legendre(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return the polynomials of the degree and of the one below it."""
    before, value = Decimal(1), x
    for k in range(2, _DEGREE + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, before


def _refined(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return the zero near x, by Newton's method, and its weight in (-1, 1)."""
    for _ in range(_REFINEMENTS):
        value, before = _legendre(x)
        slope = _DEGREE * (before - x * value) / (1 - x * x)
        x = x - value / slope
    value, before = _legendre(x)
    slope = _DEGREE * (before - x * value) / (1 - x * x)
    return x, 2 / ((1 - x * x) * slope * slope)
