"""The interface of every backend: what the functions in portable/kernels leave to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.kernels.attention import Heads
    from samebits.portable.kernels.contractions import Geometry, Sizes
    from samebits.portable.kernels.fourier import Stages, Transform
    from samebits.portable.kernels.jacobi import Problem
    from samebits.portable.kernels.linalg import Reflections
    from samebits.portable.kernels.lstm import Course, Gradients, Layer, Slopes
    from samebits.portable.kernels.optimizer import AdamRule, Group, SgdRule
    from samebits.portable.kernels.random import Settings
    from samebits.portable.kernels.reductions import Windows

    Optional = Tensor | None
    ThreeTensors = tuple[Tensor, Tensor, Tensor]


class Backend(Protocol):
    """The kernels for one kind of memory.

    Unless a method says otherwise, values are float32 or float64, of one dtype in a call; outputs are fresh,
    contiguous and written whole; and none of them is empty.
    """

    @property
    def name(self) -> str:
        """Return its name for a record: the instruction set of the C kernels, or `reference`."""

    def square_root(self, x: Tensor, out: Tensor) -> None:
        """Compute square roots, rounded once; `out` has the strides of x and fills its memory, or is x."""

    def unary(self, name: str, x: Tensor, out: Tensor) -> None:
        """Compute one of `elementwise.UNARY`; `out` has the strides of x and fills its memory, or is x."""

    def binary(self, name: str, x: Tensor, y: Tensor, out: Tensor) -> None:
        """Compute one of `elementwise.BINARY`; all three have the same strides."""

    def pointwise(self, name: str, inputs: tuple[Tensor, ...], params: Sequence[float], out: Tensor) -> None:
        """Compute one of `activations.NAMES`.

        Inputs have the strides of `out`, or one element; `out` may be one of them.
        """

    def running(self, x: Tensor, sizes: tuple[int, int, int], out: Tensor, *, product: bool) -> None:
        """Add up or multiply along the middle one of three sizes, from the first element to each one."""

    def softmax_rows(self, name: str, x: Tensor, gradient: Optional, out: Tensor, width: int) -> None:
        """Compute one of `attention.NAMES` for each row; x is the result where there is a gradient."""

    def gemm(
        self, a: Tensor, b: Tensor, added: Optional, scale: tuple[float, float], sizes: Sizes, out: Tensor
    ) -> None:
        """Compute `a @ b * alpha + added * beta` with (alpha, beta) = scale.

        Sizes are (batches, m, n, k), with 0 batches for matrices. a and b have any strides, `added` a shape
        that expands to the shape of `out`. Anything may be empty.
        """

    def reduce(
        self, name: str, x: Tensor, reduced: tuple[int, ...], out: Tensor, b: Optional, mean: Optional
    ) -> None:
        """Compute one of `reductions.NAMES` over axes.

        x is of any strides, b (for products) of its shape, `mean` (for deviations) contiguous like `out`.
        """

    def accumulate(self, out: Tensor, index: Tensor, src: Tensor, kind: str, *, skip: bool) -> bool:
        """Compute `reductions.accumulate_`, or leave `out` alone and return False if an index is no row."""

    def attend(self, heads: Heads, out: Tensor, logs: Tensor) -> None:
        """Compute `attention.attend`; the last stride of `out` is 1."""

    def attend_backward(self, heads: Heads, gradient: Tensor, of_heads: ThreeTensors) -> None:
        """Compute `attention.attend_backward`, into zeros."""

    def convolve(
        self, image: Tensor, weight: Tensor, bias: Optional, geometry: Geometry, out: Tensor
    ) -> None:
        """Compute a convolution."""

    def convolve_transposed(
        self, image: Tensor, weight: Tensor, bias: Optional, geometry: Geometry, out: Tensor
    ) -> None:
        """Compute the transpose of a convolution."""

    def convolution_weight(
        self, gradient: Tensor, image: Tensor, kernel: Sizes, geometry: Geometry, out: Tensor
    ) -> None:
        """Compute the gradient of a convolution's weight."""

    def fourier(self, x: Tensor, out: Tensor, transform: Transform, stages: Stages, turns: Optional) -> None:
        """Compute a Fourier transform along the middle one of three sizes.

        Complex numbers are complex64 or complex128. `turns` are `fourier.first_turns` where an even number of
        real numbers goes in or comes out.
        """

    def pairs(self, name: str, x: Tensor, y: Tensor, out: Tensor) -> None:
        """Compute one of `complex_numbers.NAMES`; all are contiguous, complex64 or complex128."""

    def layer_norm(self, x: Tensor, weight: Optional, bias: Optional, eps: float, out: ThreeTensors) -> None:
        """Compute `norms.layer_norm` of contiguous rows, into the result, means and reciprocal deviations."""

    def layer_norm_gradient(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional, out: Tensor
    ) -> None:
        """Compute the gradient of x; all are contiguous."""

    def layer_norm_weights(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, out: tuple[Tensor, Tensor]
    ) -> None:
        """Compute the gradients of weight and bias; all are contiguous."""

    def group_norm(self, x: Tensor, weight: Optional, bias: Optional, eps: float, out: ThreeTensors) -> None:
        """Compute `norms.group_norm` of (samples, channels, positions), for a group for each mean."""

    def group_norm_gradient(
        self, gradient: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional, out: ThreeTensors
    ) -> None:
        """Compute the gradients of x, weight and bias."""

    def batch_norm(
        self,
        x: Tensor,
        weight: Optional,
        bias: Tensor,
        running: tuple[Optional, Optional],
        numbers: tuple[float, float],
        out: ThreeTensors,
    ) -> bool:
        """Compute `norms.batch_norm` in one call, or do nothing and return False where it takes several."""

    def scale_channels(self, x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor, out: Tensor) -> None:
        """Compute fma(x - mean, scale, shift) with values of each channel of (outer, channels, inner)."""

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
        """Compute the gradients of x (where wanted), weight and bias. x may be empty."""

    def lstm(self, x: Tensor, layer: Layer, out: Tensor, course: Course) -> None:
        """Compute `lstm.run`; all are contiguous, and the course has one step where it is not kept."""

    def lstm_gradient(self, layer: Layer, course: Course, slopes: Slopes, out: Gradients) -> None:
        """Compute `lstm.gradients`; all are contiguous, but for steps and samples of the slope of `out`."""

    def adam(self, rule: AdamRule, groups: Sequence[Group], scales: Sequence[tuple[float, float]]) -> None:
        """Take a step of Adam in place, on tensors of any strides; the gradients are only read."""

    def sgd(self, rule: SgdRule, groups: Sequence[Group]) -> None:
        """Take a step of SGD in place, on tensors of any strides; the gradients are only read."""

    def fill_random(self, kind: int, out: Tensor, key: int, settings: Settings) -> None:
        """Draw values of a `random.Kind`; `out` is contiguous, of the kind's dtype, and may be empty."""

    def window_mean(self, wide: Tensor, dims: tuple[Windows, ...], divisor: int, out: Tensor) -> None:
        """Compute the mean of each window."""

    def window_spread(self, gradient: Tensor, dims: tuple[Windows, ...], divisor: int, out: Tensor) -> None:
        """Compute the gradient of the means' input."""

    def rotate(self, problem: Problem, most_sweeps: int, done: Tensor) -> None:
        """Rotate rows as `jacobi.rotate`; `done` (int64) becomes 1 for each matrix that is done, else 0."""

    def reflect_columns(self, work: Tensor, reflections: Reflections) -> None:
        """Make upper triangles in place, and write the reflections; `v` is zeros at first."""

    def multiply_reflections(self, reflections: Reflections, q: Tensor) -> None:
        """Multiply q, unit matrices at first, by all reflections."""

    def cholesky(self, a: Tensor, out: Tensor, info: Tensor) -> None:
        """Write lower factors into `out`, and 1 + the first column that fails into `info`: zeros at first."""

    def lu(self, a: Tensor, pivots: Tensor, info: Tensor, *, pivot: bool) -> None:
        """Write both factors over a, and 1 + the first pivot that is 0 into `info` (int64), 0 at first."""

    def solve_triangular(self, a: Tensor, x: Tensor, *, upper: bool, unit: bool) -> None:
        """Write the solutions over x, contiguous right sides; a is of any strides."""
