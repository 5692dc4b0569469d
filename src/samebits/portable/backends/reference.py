"""The reference (portable/reference) as a backend: slow and plain, in NumPy."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from samebits.portable._tensors import as_array, as_tensor
from samebits.portable.backends.reference_lstm import ReferenceLstm
from samebits.portable.kernels.fourier import Kind as Fourier
from samebits.portable.kernels.optimizer import write_back
from samebits.portable.kernels.random import Kind
from samebits.portable.reference import (
    activations,
    attention,
    contractions,
    elementary,
    fourier,
    jacobi,
    linalg,
    norms,
    optimizer,
    pairs,
    random,
    reductions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torch import Tensor

    from samebits.portable.backends.interface import Optional, ThreeTensors
    from samebits.portable.kernels.attention import Heads
    from samebits.portable.kernels.contractions import Geometry, Sizes
    from samebits.portable.kernels.fourier import Stages, Transform
    from samebits.portable.kernels.jacobi import Problem
    from samebits.portable.kernels.linalg import Reflections
    from samebits.portable.kernels.optimizer import AdamRule, Group, SgdRule
    from samebits.portable.kernels.random import Settings
    from samebits.portable.kernels.reductions import Windows
    from samebits.portable.reference.fma import Array


class ReferenceBackend(ReferenceLstm):
    """The backend that computes with the reference. Every method is as `Backend` says."""

    name = "reference"

    def square_root(self, x: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        with np.errstate(invalid="ignore"):
            out.copy_(as_tensor(np.sqrt(as_array(x.contiguous()))))

    def unary(self, name: str, x: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        out.copy_(as_tensor(elementary.unary(name, as_array(x))))

    def binary(self, name: str, x: Tensor, y: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        out.copy_(as_tensor(elementary.binary(name, as_array(x), as_array(y))))

    def pointwise(self, name: str, inputs: tuple[Tensor, ...], params: Sequence[float], out: Tensor) -> None:
        """See `Backend`."""
        out.copy_(as_tensor(activations.pointwise(name, [as_array(x) for x in inputs], params)))

    def running(self, x: Tensor, sizes: tuple[int, int, int], out: Tensor, *, product: bool) -> None:
        """See `Backend`."""
        values = reductions.running(as_array(x.view(sizes)), 1, product=product)
        out.copy_(as_tensor(values.copy()).view(x.shape))

    def softmax_rows(self, name: str, x: Tensor, gradient: Optional, out: Tensor, width: int) -> None:
        """See `Backend`."""
        rows = [as_array(t.reshape(-1, width)) for t in (x, gradient) if t is not None]
        out.copy_(as_tensor(getattr(attention, name)(*rows)).view(x.shape))

    def gemm(
        self,
        a: Tensor,
        b: Tensor,
        added: Optional,
        scale: tuple[float, float],
        sizes: Sizes,  # noqa: ARG002 - of every backend
        out: Tensor,
    ) -> None:
        """See `Backend`."""
        alpha, beta = scale
        product = as_tensor(contractions.gemm(a.numpy(force=True), b.numpy(force=True)))
        if alpha != 1:
            product = product * alpha
        if added is not None:
            product = product + (added if beta == 1 else added * beta)
        out.copy_(product)

    def reduce(
        self, name: str, x: Tensor, reduced: tuple[int, ...], out: Tensor, b: Optional, mean: Optional
    ) -> None:
        """See `Backend`."""
        operands = [as_array(x)]
        if mean is not None:
            operands.append(as_array(mean.reshape([n for d, n in enumerate(x.shape) if d not in reduced])))
        if b is not None:
            operands.append(as_array(b))
        values = getattr(reductions, name)(*operands, reduced)[...]
        out.copy_(as_tensor(values).view(out.shape))

    def accumulate(self, out: Tensor, index: Tensor, src: Tensor, kind: str, *, skip: bool) -> bool:
        """See `Backend`."""
        rows = out.shape[1]
        if bool(((index >= rows) | (index < (-1 if skip else -rows))).any()):
            return False
        reductions.accumulate(as_array(out), as_array(index), as_array(src), kind, skip=skip)
        return True

    def attend(self, heads: Heads, out: Tensor, logs: Tensor) -> None:
        """See `Backend`."""
        values = attention.attend(*_heads(heads), is_causal=heads.is_causal)
        out.copy_(as_tensor(values[0]))
        logs.copy_(as_tensor(values[1]))

    def attend_backward(self, heads: Heads, gradient: Tensor, of_heads: ThreeTensors) -> None:
        """See `Backend`."""
        values = attention.attend_backward(*_heads(heads), as_array(gradient), is_causal=heads.is_causal)
        _fill(of_heads, values)

    def convolve(
        self, image: Tensor, weight: Tensor, bias: Optional, geometry: Geometry, out: Tensor
    ) -> None:
        """See `Backend`."""
        out.copy_(as_tensor(contractions.convolve(as_array(image), as_array(weight), geometry)))
        _add_to_channels(out, bias)

    def convolve_transposed(
        self, image: Tensor, weight: Tensor, bias: Optional, geometry: Geometry, out: Tensor
    ) -> None:
        """See `Backend`."""
        sizes = tuple(out.shape[2:])
        out.copy_(
            as_tensor(contractions.convolve_transposed(as_array(image), as_array(weight), geometry, sizes))
        )
        _add_to_channels(out, bias)

    def convolution_weight(
        self, gradient: Tensor, image: Tensor, kernel: Sizes, geometry: Geometry, out: Tensor
    ) -> None:
        """See `Backend`."""
        values = contractions.convolution_weight_gradient(
            as_array(gradient), as_array(image), kernel, geometry
        )
        out.copy_(as_tensor(values))

    def fourier(self, x: Tensor, out: Tensor, transform: Transform, stages: Stages, turns: Optional) -> None:
        """See `Backend`."""
        with np.errstate(all="ignore"):
            values = _fourier(_lines(x, transform), transform, stages, turns)
        outer, _, inner = transform.sizes
        out.copy_(as_tensor(values).view(outer, inner, -1).transpose(1, 2).reshape(out.shape))

    def pairs(self, name: str, x: Tensor, y: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        with np.errstate(all="ignore"):
            out.copy_(as_tensor(getattr(pairs, name)(as_array(x), as_array(y))))

    def layer_norm(self, x: Tensor, weight: Optional, bias: Optional, eps: float, out: ThreeTensors) -> None:
        """See `Backend`."""
        _fill(out, norms.layer_norm(_rows(x, out[1]), _numpy(weight), _numpy(bias), eps))

    def layer_norm_gradient(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional, out: Tensor
    ) -> None:
        """See `Backend`."""
        values = norms.layer_norm_gradient(
            _rows(gradient, mean), _rows(x, mean), _flat(mean), _flat(rstd), _numpy(weight)
        )
        _fill((out,), (values,))

    def layer_norm_weights(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, out: tuple[Tensor, Tensor]
    ) -> None:
        """See `Backend`."""
        rows = _rows(gradient, mean), _rows(x, mean)
        _fill(out, norms.layer_norm_weight_gradients(*rows, _flat(mean), _flat(rstd)))

    def group_norm(self, x: Tensor, weight: Optional, bias: Optional, eps: float, out: ThreeTensors) -> None:
        """See `Backend`."""
        groups = out[1].shape[1]
        _fill(out, norms.group_norm(as_array(x), _numpy(weight), _numpy(bias), groups, eps))

    def group_norm_gradient(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional, out: ThreeTensors
    ) -> None:
        """See `Backend`."""
        values = norms.group_norm_gradient(
            as_array(gradient), as_array(x), as_array(mean), as_array(rstd), _numpy(weight)
        )
        _fill(out, values)

    def batch_norm(self, *_args: object, **_named: object) -> bool:
        """Return False: the reference always takes several calls."""
        return False

    def scale_channels(self, x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        values = norms.scale_channels(as_array(x), as_array(mean), as_array(scale), as_array(shift))
        _fill((out,), (values,))

    def batch_norm_gradient(
        self,
        gradient: Tensor,
        x: Tensor,
        statistics: tuple[Tensor, Tensor],
        weight: Optional,
        out: tuple[Optional, Tensor, Tensor],
        *,
        training: bool,
    ) -> None:
        """See `Backend`."""
        mean, rstd = (as_array(t) for t in statistics)
        values = norms.batch_norm_gradient(
            as_array(gradient), as_array(x), (mean, rstd), _numpy(weight), training=training
        )
        _fill(out, values)

    def adam(self, rule: AdamRule, groups: Sequence[Group], scales: Sequence[tuple[float, float]]) -> None:
        """See `Backend`."""
        for group, scale in zip(groups, scales, strict=True):
            _in_numpy(group, functools.partial(optimizer.adam, rule), *scale)

    def sgd(self, rule: SgdRule, groups: Sequence[Group]) -> None:
        """See `Backend`."""
        for group in groups:
            _in_numpy(group, functools.partial(optimizer.sgd, rule))

    def fill_random(self, kind: int, out: Tensor, key: int, settings: Settings) -> None:
        """See `Backend`."""
        out.copy_(as_tensor(_random(Kind(kind), key, out, settings)).view(out.shape))

    def window_mean(self, wide: Tensor, dims: tuple[Windows, ...], divisor: int, out: Tensor) -> None:
        """See `Backend`."""
        reductions.window_mean(as_array(wide), as_array(out), _bounds(dims), divisor)

    def window_spread(self, gradient: Tensor, dims: tuple[Windows, ...], divisor: int, out: Tensor) -> None:
        """See `Backend`."""
        reductions.window_spread(as_array(out.zero_()), as_array(gradient), _bounds(dims), divisor)

    def rotate(self, problem: Problem, most_sweeps: int, done: Tensor) -> None:
        """See `Backend`."""
        rows, width, limits, tolerance = problem
        bounds = None if limits is None else as_array(limits)
        found = jacobi.rotate(jacobi.Rows(as_array(rows), width, bounds, tolerance), most_sweeps)
        done.copy_(as_tensor(found))

    def reflect_columns(self, work: Tensor, reflections: Reflections) -> None:
        """See `Backend`."""
        linalg.reflect_columns(as_array(work), as_array(reflections.v), as_array(reflections.tau))

    def multiply_reflections(self, reflections: Reflections, q: Tensor) -> None:
        """See `Backend`."""
        linalg.multiply_reflections(as_array(reflections.v), as_array(reflections.tau), as_array(q))

    def cholesky(self, a: Tensor, out: Tensor, info: Tensor) -> None:
        """See `Backend`."""
        linalg.cholesky(as_array(a), as_array(out), as_array(info))

    def lu(self, a: Tensor, pivots: Tensor, info: Tensor, *, pivot: bool) -> None:
        """See `Backend`."""
        linalg.lu(as_array(a), as_array(pivots), as_array(info), pivot=pivot)

    def solve_triangular(self, a: Tensor, x: Tensor, *, upper: bool, unit: bool) -> None:
        """See `Backend`."""
        linalg.solve_triangular(as_array(a), as_array(x), upper=upper, unit=unit)


def _random(kind: Kind, key: int, out: Tensor, settings: Settings) -> Array:
    _, bits, low, source, stream, a, b = settings
    count, is_f64 = out.numel(), kind.name.endswith("F64")
    values: Array
    if kind is Kind.WORDS:
        values = random.words64(key, count).view("int64")
    elif kind is Kind.RANGE:
        values = random.integers(key, count, low, bits)
    elif kind is Kind.UNIFORM_F64:
        values = random.uniform_f64(key, count, a, b)
    elif kind is Kind.UNIFORM_F32:
        values = random.uniform_f32(key, count, bits, a, b)
    elif kind in {Kind.NORMAL_F32, Kind.NORMAL_F64}:
        values = random.normal(key, count, is_f64, a, b, stream)
    elif kind in {Kind.EXPONENTIAL_F32, Kind.EXPONENTIAL_F64}:
        values = random.exponential(key, count, is_f64, a, stream)
    else:
        chances = np.asarray(a) if source is None else as_array(source.double()).ravel()
        values = random.bernoulli(key, count, chances)
    return values


def _lines(x: Tensor, transform: Transform) -> Array:
    """Return a line of numbers for each transform."""
    outer, _, inner = transform.sizes
    lines = x.view(outer, -1, inner).transpose(1, 2)
    return as_array(lines.reshape(outer * inner, -1))


def _fourier(lines: Array, transform: Transform, stages: Stages, turns: Optional) -> Array:
    plan = fourier.Plan(stages.radices.tolist(), as_array(stages.table), _numpy(turns), transform.scale)
    if transform.kind is Fourier.COMPLEX:
        return fourier.of_complex(lines, plan, inverse=transform.inverse)
    if transform.kind is Fourier.FROM_REAL:
        return fourier.of_reals(lines, plan)
    return fourier.to_reals(lines, plan, transform.sizes[1])


def _heads(heads: Heads) -> tuple[Array, Array, Array, Array | None]:
    groups = heads.query.shape[1] // heads.key.shape[1]
    key, value = (as_array(x.repeat_interleave(groups, 1)) for x in (heads.key, heads.value))
    return as_array(heads.query), key, value, _numpy(heads.mask)


def _bounds(dims: tuple[Windows, ...]) -> list[tuple[list[int], list[int], list[int]]]:
    return [(d.first.tolist(), d.end.tolist(), d.counts.tolist()) for d in dims]


def _add_to_channels(out: Tensor, bias: Optional) -> None:
    if bias is not None:
        out.add_(bias.reshape(-1, *(1,) * (out.dim() - 2)))


def _in_numpy(group: Group, step: Callable[..., None], *scale: float) -> None:
    dense = tuple(tensor.contiguous() for tensor in group)
    step(tuple(as_array(tensor) for tensor in dense), *scale)
    write_back(group, dense)


def _rows(x: Tensor, each: Tensor) -> Array:
    """Return a matrix with a row for each value of `each`."""
    rows = each.numel()
    return as_array(x.reshape(rows, x.numel() // rows))


def _flat(x: Tensor) -> Array:
    return as_array(x.view(-1))


def _numpy(x: Optional) -> Array | None:
    return None if x is None else as_array(x)


def _fill(outs: Iterable[Optional], values: Iterable[Array]) -> None:
    for out, each in zip(outs, values, strict=True):
        if out is not None:
            out.copy_(as_tensor(each).view(out.shape))
