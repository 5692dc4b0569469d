"""The parameters of the C kernels of normalisation, as those in parameters.py."""

# No `from __future__ import annotations`, as there.

from typing import NamedTuple

from samebits.portable.backends.parameters import Address


class BatchNorm(NamedTuple):
    """Normalisation of every channel with its own statistics; `rest` is 1 - momentum."""

    is_f64: bool
    x: Address
    weight: Address
    bias: Address
    running_mean: Address
    running_var: Address
    out: Address
    mean: Address
    rstd: Address
    outer: int
    channels: int
    inner: int
    eps: float
    momentum: float
    rest: float


class BatchNormGradient(NamedTuple):
    """The gradients of `BatchNorm`: of weight and bias, and of x unless `out` is 0."""

    is_f64: bool
    training: bool
    x: Address
    gradient: Address
    weight: Address
    mean: Address
    rstd: Address
    out: Address
    of_weight: Address
    of_bias: Address
    outer: int
    channels: int
    inner: int


class ChannelNorm(NamedTuple):
    """fma(x - mean, scale, shift) with values of each channel."""

    is_f64: bool
    x: Address
    mean: Address
    scale: Address
    shift: Address
    out: Address
    outer: int
    channels: int
    inner: int


class GroupNorm(NamedTuple):
    """Normalisation of every group of `each` channels of every sample."""

    is_f64: bool
    x: Address
    weight: Address
    bias: Address
    out: Address
    mean: Address
    rstd: Address
    samples: int
    groups: int
    each: int
    inner: int
    eps: float


class GroupNormGradient(NamedTuple):
    """The gradients of `GroupNorm`."""

    is_f64: bool
    x: Address
    gradient: Address
    weight: Address
    mean: Address
    rstd: Address
    out: Address
    of_weight: Address
    of_bias: Address
    samples: int
    groups: int
    each: int
    inner: int


class LayerNorm(NamedTuple):
    """Normalisation of every row; backward, `out` is the gradient of x."""

    is_f64: bool
    is_backward: bool
    x: Address
    gradient: Address
    weight: Address
    bias: Address
    out: Address
    mean: Address
    rstd: Address
    rows: int
    n: int
    eps: float


class LayerNormWeights(NamedTuple):
    """The gradients of weight and bias of `LayerNorm`."""

    is_f64: bool
    x: Address
    gradient: Address
    mean: Address
    rstd: Address
    of_weight: Address
    of_bias: Address
    rows: int
    n: int
