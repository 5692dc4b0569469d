"""Reductions, softmax and normalisation layers beside plain torch, in turns, smallest times."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from samebits.portable.kernels import reductions
from samebits.portable.kernels.attention import softmax, softmax_gradient
from samebits.portable.ops import batch_norm, normalization
from samebits.portable.ops import reductions as ops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Case = tuple[str, Callable[[], object], Callable[[], object]]

ROUNDS = 7
SECONDS = 0.004


def ratio(ours: Callable[[], object], plain: Callable[[], object]) -> tuple[float, float]:
    """Seconds of one call of each: the smallest of several short runs that take turns."""
    best = [float("inf")] * 2
    for function in (ours, plain):
        function()
    for _ in range(ROUNDS):
        for i, function in enumerate((ours, plain)):
            calls, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < SECONDS or not calls:
                function()
                calls += 1
            best[i] = min(best[i], spent / calls)
    return best[0], best[1]


def cases() -> Iterator[Case]:
    """Name, portable call, plain call."""
    yield from _sums()
    yield from _softmax()
    yield from _layers()


def _sums() -> Iterator[Case]:
    shapes: tuple[tuple[tuple[int, ...], list[int]], ...] = (
        ((1 << 20,), [0]),
        ((1000, 777), [1]),
        ((1000, 777), [0]),
        ((4096, 64), [1]),
        ((4096, 64), [0]),
        ((32, 64, 16, 16), [0, 2, 3]),
    )
    for shape, dims in shapes:
        x = torch.randn(shape)
        yield (
            f"sum {shape} over {dims}",
            lambda x=x, d=dims: reductions.sum_over(x, d),
            lambda x=x, d=dims: x.sum(d),
        )  # type: ignore[misc]
    x = torch.randn(1000, 777)
    yield "norm (1000, 777)", lambda: ops.vector_norm(x), lambda: torch.linalg.vector_norm(x)
    yield "var (1000, 777) over [1]", lambda: ops.var(x, [1]), lambda: x.var(1)


def _softmax() -> Iterator[Case]:
    for shape in ((64, 1000), (2048, 128)):
        x, gradient = torch.randn(shape), torch.randn(shape)
        for log in (False, True):
            name = "log_softmax" if log else "softmax"
            plain = torch.log_softmax if log else torch.softmax
            y = plain(x, 1)
            backward = getattr(torch.ops.aten, f"_{name}_backward_data")
            yield f"{name} {shape}", lambda x=x, log=log: softmax(x, 1, log), lambda x=x, p=plain: p(x, 1)  # type: ignore[misc]
            yield (
                f"{name} backward {shape}",
                lambda g=gradient, y=y, log=log: softmax_gradient(g, y, 1, log),  # type: ignore[misc]
                lambda g=gradient, y=y, b=backward: b(g, y, 1, torch.float32),  # type: ignore[misc]
            )


def _layers() -> Iterator[Case]:
    aten = torch.ops.aten
    x, gradient, w = torch.randn(512, 384), torch.randn(512, 384), torch.randn(384)
    layer = (x, [384], w, w, 1e-5)
    statistics = aten.native_layer_norm(*layer)[1:]
    back = (gradient, x, [384], *statistics, w, w, [True] * 3)
    yield (
        "layer_norm (512, 384)",
        lambda: normalization.layer_norm(*layer),
        lambda: aten.native_layer_norm(*layer),
    )
    yield (
        "layer_norm backward",
        lambda: normalization.layer_norm_backward(*back),
        lambda: aten.native_layer_norm_backward(*back),
    )
    for shape in ((32, 64, 16, 16), (32, 512, 4, 4), (64, 256)):
        image, of_image = torch.randn(shape), torch.randn(shape)
        v, mean, variance = torch.randn(shape[1]), torch.zeros(shape[1]), torch.ones(shape[1])
        args = (image, v, v, mean, variance, True, 0.1, 1e-5)
        saved = aten.native_batch_norm(*args)[1:]
        of_args = (of_image, image, v, mean, variance, *saved, True, 1e-5, [True] * 3)
        yield (
            f"batch_norm {shape}",
            lambda a=args: batch_norm.native_batch_norm(*a),  # type: ignore[misc]
            lambda a=args: aten.native_batch_norm(*a),  # type: ignore[misc]
        )
        yield (
            f"batch_norm backward {shape}",
            lambda a=of_args: batch_norm.native_batch_norm_backward(*a),  # type: ignore[misc]
            lambda a=of_args: aten.native_batch_norm_backward(*a),  # type: ignore[misc]
        )
    image, of_image, v = torch.randn(16, 64, 16, 16), torch.randn(16, 64, 16, 16), torch.randn(64)
    sizes = (16, 64, 256, 8)
    found = aten.native_group_norm(image, v, v, *sizes, 1e-5)[1:]
    of_group = (of_image, image, *found, v, *sizes, [True] * 3)
    yield (
        "group_norm (16, 64, 16, 16)",
        lambda: normalization.group_norm(image, v, v, *sizes, 1e-5),
        lambda: aten.native_group_norm(image, v, v, *sizes, 1e-5),
    )
    yield (
        "group_norm backward",
        lambda: normalization.group_norm_backward(*of_group),
        lambda: aten.native_group_norm_backward(*of_group),
    )


def main() -> None:
    """Print a line for each case."""
    for name, ours, plain in cases():
        one, other = ratio(ours, plain)
        print(f"{name:38} {one * 1e6:9.1f} us  torch {other * 1e6:9.1f} us  {one / other:5.2f}x")


if __name__ == "__main__":
    main()
