"""Activations, elementwise losses and scaled sums, as docs/reference/portable-numerics.md has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from samebits.portable.reference.elementary import unary
from samebits.portable.reference.fma import fma

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits.portable.reference.fma import Array

Params = Any  # numbers of the dtype of the inputs
where = np.where


def _coefficients(text: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, text.split()))


EXP2 = _coefficients(
    "0x1.4447bp-13 0x1.5f096p-10 0x1.3b2a28p-7 0x1.c6af7ap-5 0x1.ebfbep-3 0x1.62e43p-1 0x1p+0"
)
LOG2_TAIL = _coefficients(
    """0x1.bbac58p-30 -0x1.1def76p-24 0x1.432ddp-20 -0x1.a1599ap-17 0x1.49746cp-14 -0x1.1f06bp-12
    -0x1.eeaa2cp-16 0x1.ca7d86p-8 -0x1.ade8dp-5 -0x1.d63aa8p-2 -0x1.26aedap+0 -0x1p+0"""
)


def pointwise(name: str, inputs: Sequence[Array], params: Sequence[float] = ()) -> Array:
    """Return the function of this name, element by element.

    Args:
        name: one of `samebits.portable.kernels.activations.NAMES`.
        inputs: float32 or float64, all alike; shapes that broadcast.
        params: rounded to that dtype first.
    """
    arrays = np.broadcast_arrays(*inputs)
    kind = arrays[0].dtype.type
    with np.errstate(all="ignore"):
        value = FUNCTIONS[name](*arrays, p=[kind(number) for number in params])
    return np.asarray(value, dtype=kind)


def _exp(x: Array) -> Array:
    return unary("exp", x)


def _expm1(x: Array) -> Array:
    return unary("expm1", x)


def _log(x: Array) -> Array:
    return unary("log", x)


def _log1p(x: Array) -> Array:
    return unary("log1p", x)


def _gate(x: Array) -> Array:
    shifted = x + 3
    low = where(shifted < 0, 0, shifted).astype(x.dtype)
    return where(low > 6, 6, low).astype(x.dtype)


def _expit(x: Array) -> Array:
    return 1 / (1 + _exp(-x))


def _log1p_exp(x: Array) -> Array:
    return where(x < 0, 0, x).astype(x.dtype) + _log1p(_exp(-np.abs(x)))


def _horner(names: tuple[float, ...], x: Array) -> Array:
    value = np.full_like(x, names[0])
    for coefficient in names[1:]:
        value = fma(value, x, np.full_like(x, coefficient))
    return value


def _exp2_32(x: Array) -> Array:
    rounder = np.float32(1.5 * 2**23)
    k = (x + rounder) - rounder
    return _horner(EXP2, x - k) * np.exp2(np.where(np.isnan(k), 0, k).astype(np.float64)).astype(np.float32)


def _normal_cdf(x: Array) -> Array:
    if x.dtype == np.float64:
        return 0.5 * (1 + unary("erf", x * float.fromhex("0x1.6a09e667f3bcdp-1")))
    size = np.abs(x)
    inside = _exp2_32(_horner(LOG2_TAIL, where(size > 7, 7, size).astype(np.float32)))
    tail = where(size > 7, 0, inside).astype(np.float32)
    return where(x < 0, tail, 1 - tail)


def _normal_density(x: Array) -> Array:
    if x.dtype == np.float64:
        return _exp(-0.5 * x * x) * float.fromhex("0x1.9884533d43651p-2")
    size = np.abs(x)
    z = where(size > 13, 13, size).astype(np.float32)
    inside = _exp2_32(z * z * float.fromhex("-0x1.715476p-1")) * float.fromhex("0x1.988454p-2")
    return where(size > 13, 0, inside).astype(np.float32)


def _softshrink(a: Array, p: Params) -> Any:
    return where(a > p[0], a - p[0], where(a < -p[0], a + p[0], a * 0))


def _hardswish_backward(a: Array, b: Array, p: Params) -> Any:
    return where(b <= -3, 0, where(b < 3, a * (b / 3 + 0.5), a))


BETA, KAPPA = float.fromhex("0x1.9884533d43651p-1"), float.fromhex("0x1.6e4e26d4801f7p-5")


def _gelu_tanh(a: Array, p: Params) -> Any:
    return 0.5 * a * (1 + unary("tanh", BETA * (a + KAPPA * (a * a * a))))


def _gelu_tanh_backward(a: Array, b: Array, p: Params) -> Any:
    square = b * b
    t = unary("tanh", BETA * (b + KAPPA * (square * b)))
    slope = BETA * (1 + a.dtype.type(3) * a.dtype.type(KAPPA) * square)
    return a * (0.5 * (1 + t) + 0.5 * b * (1 - t * t) * slope)


def _silu_backward(a: Array, b: Array, p: Params) -> Any:
    s = _expit(b)
    return a * (s * (1 + b * (1 - s)))


def _mish(a: Array, p: Params) -> Any:
    e = _exp(a)
    n = e * (e + 2)
    return where(a > 20, a, a * (n / (n + 2)))


def _mish_backward(a: Array, b: Array, p: Params) -> Any:
    e = _exp(b)
    n = e * (e + 2)
    w = n / (n + 2)
    return where(b > 20, a, a * (w + b * (e / (1 + e)) * (1 - w * w)))


def _elu(a: Array, p: Params) -> Any:
    return where(a <= 0, _expm1(a * p[2]) * (p[0] * p[1]), a * p[1])


def _elu_backward(a: Array, b: Array, p: Params) -> Any:
    return where(b <= 0, a * p[2] * (p[0] * p[1]) * _exp(b * p[2]), a * p[1])


def _softplus(a: Array, p: Params) -> Any:
    z = a * p[0]
    return where(z > p[1], a, _log1p_exp(z) / p[0])


def _softplus_backward(a: Array, b: Array, p: Params) -> Any:
    z = b * p[0]
    return where(z > p[1], a, a * _expit(z))


def _log_sigmoid(a: Array, p: Params) -> Any:
    return where(a > 0, 0, a).astype(a.dtype) - _log1p(_exp(-np.abs(a)))


def _glu_backward_gate(a: Array, b: Array, c: Array, p: Params) -> Any:
    s = _expit(c)
    return (1 - s) * s * a * b


def _lerp(a: Array, b: Array, c: Array, p: Params) -> Any:
    d = b - a
    return where(np.abs(c) < 0.5, a + c * d, b - d * (1 - c))


def _smooth_l1(a: Array, b: Array, p: Params) -> Any:
    z = np.abs(a - b)
    return where(z < p[0], 0.5 * z * z / p[0], z - 0.5 * p[0])


def _smooth_l1_backward(a: Array, b: Array, c: Array, p: Params) -> Any:
    d, g = a - b, c * p[0]
    return where(d <= -p[1], -g, where(d >= p[1], g, d * g / p[1]))


def _huber(a: Array, b: Array, p: Params) -> Any:
    z = np.abs(a - b)
    return where(z <= p[0], 0.5 * z * z, p[0] * (z - 0.5 * p[0]))


def _huber_backward(a: Array, b: Array, c: Array, p: Params) -> Any:
    d, g = a - b, c * p[0]
    return where(d <= -p[1], -(g * p[1]), where(d >= p[1], g * p[1], d * g))


def _log_cut(log_x: Array) -> Array:
    return where(log_x < -100, -100, log_x).astype(log_x.dtype)


def _binary_cross_entropy(a: Array, b: Array, p: Params) -> Any:
    return (b - 1) * _log_cut(_log1p(-a)) - b * _log_cut(_log(a))


def _binary_cross_entropy_backward(a: Array, b: Array, c: Array, p: Params) -> Any:
    spread = (1 - a) * a
    return c * (a - b) / where(spread < a.dtype.type(1e-12), a.dtype.type(1e-12), spread) * p[0]


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "softshrink": _softshrink,
    "hardshrink": lambda a, p: where((a >= -p[0]) & (a <= p[0]), 0, a),
    "shrink_backward": lambda a, b, p: where((b >= -p[0]) & (b <= p[0]), 0, a),
    "hardsigmoid": lambda a, p: _gate(a) / 6,
    "hardsigmoid_backward": lambda a, b, p: where((b > -3) & (b < 3), a / 6, 0),
    "hardswish": lambda a, p: a * _gate(a) / 6,
    "hardswish_backward": _hardswish_backward,
    "gelu": lambda a, p: a * _normal_cdf(a),
    "gelu_backward": lambda a, b, p: a * (_normal_cdf(b) + b * _normal_density(b)),
    "gelu_tanh": _gelu_tanh,
    "gelu_tanh_backward": _gelu_tanh_backward,
    "silu": lambda a, p: a / (1 + _exp(-a)),
    "silu_backward": _silu_backward,
    "mish": _mish,
    "mish_backward": _mish_backward,
    "elu": _elu,
    "elu_backward": _elu_backward,
    "elu_backward_of_result": lambda a, b, p: where(b <= 0, a * p[2] * (b + p[0] * p[1]), a * p[1]),
    "softplus": _softplus,
    "softplus_backward": _softplus_backward,
    "log_sigmoid": _log_sigmoid,
    "log_sigmoid_backward": lambda a, b, p: a * _expit(-b),
    "glu": lambda a, b, p: a * _expit(b),
    "glu_backward_value": lambda a, b, c, p: _expit(c) * a,
    "glu_backward_gate": _glu_backward_gate,
    "add_scaled": lambda a, b, p: a + b * p[0],
    "lerp": _lerp,
    "addcmul": lambda a, b, c, p: a + p[0] * b * c,
    "addcdiv": lambda a, b, c, p: a + p[0] * b / c,
    "mse": lambda a, b, p: (a - b) * (a - b),
    "mse_backward": lambda a, b, c, p: (a - b) * c * p[0],
    "smooth_l1": _smooth_l1,
    "smooth_l1_backward": _smooth_l1_backward,
    "huber": _huber,
    "huber_backward": _huber_backward,
    "binary_cross_entropy": _binary_cross_entropy,
    "binary_cross_entropy_backward": _binary_cross_entropy_backward,
    "with_logits": lambda a, b, p: (1 - b) * a + _log1p_exp(-a),
    "with_logits_pos": lambda a, b, c, p: (1 - b) * a + ((c - 1) * b + 1) * _log1p_exp(-a),
    "soft_margin": lambda a, b, p: _log1p_exp(-b * a),
    "soft_margin_backward": lambda a, b, c, p: -(b * _expit(-b * a)) * c * p[0],
}
