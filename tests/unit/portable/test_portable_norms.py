"""Softmax and normalisation layers in C against the reference, bit for bit, and their accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from samebits.portable.backends.library import load
from samebits.portable.backends.reference import ReferenceBackend
from samebits.portable.kernels import norms
from samebits.portable.kernels.attention import softmax, softmax_gradient
from samebits.portable.ops import batch_norm, normalization
from samebits.portable.reference import attention as reference_attention
from samebits.portable.reference import norms as reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

ISAS = [isa for isa in ("avx512", "avx2", "neon", "scalar") if load() is not None and load().select(isa)]  # type: ignore[union-attr]
SHAPES = [(3, 300), (5, 7), (40, 33), (1, 4200), (300, 140)]
BOTH = [torch.float32, torch.float64]


@pytest.fixture(params=[(isa, threads) for isa in ISAS for threads in (1, 2)])
def anywhere(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each instruction set that this machine has, with one thread and with two."""
    kernels = load()
    assert kernels is not None
    kernels.select(request.param[0])
    kernels.set_threads(request.param[1])
    yield
    kernels.select("")
    kernels.set_threads(1)


def check(ours: Tensor, theirs: object) -> None:
    """Same bits; NaNs are alike."""
    other = torch.from_numpy(np.ascontiguousarray(theirs)).view(ours.shape)
    words = torch.int32 if ours.dtype == torch.float32 else torch.int64
    equal = ours.contiguous().view(words) == other.view(words)
    assert bool((equal | (ours.isnan() & other.isnan())).all()), (ours, other)


def numbers(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    return torch.from_numpy(np.asarray(np.random.default_rng(seed).standard_normal(shape) * 3)).to(dtype)


def shapes(dtype: torch.dtype) -> list[tuple[int, int]]:
    """The reference's fma is slow in float64."""
    return SHAPES if dtype == torch.float32 else SHAPES[:2]


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", BOTH)
def test_softmax_is_the_reference(dtype: torch.dtype) -> None:
    for shape in shapes(dtype):
        x, gradient = numbers(shape, dtype, 1), numbers(shape, dtype, 2)
        x[0, :3] = torch.tensor([float("-inf"), -0.0, 0.0])
        if shape[0] > 4:
            x[1, 0], x[2, 1], x[3] = float("nan"), float("inf"), float("-inf")
        for log in (False, True):
            name = "log_softmax" if log else "softmax"
            found = softmax(x, 1, log)
            check(found, getattr(reference_attention, name)(x.numpy()))
            want = getattr(reference_attention, f"{name}_gradient")(found.numpy(), gradient.numpy())
            check(softmax_gradient(gradient, found, 1, log), want)
            assert torch.equal(softmax(x.t(), 0, log).t().nan_to_num(7), found.nan_to_num(7))


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", BOTH)
def test_layer_norm_is_the_reference(dtype: torch.dtype) -> None:
    for shape in shapes(dtype):
        x, gradient = numbers(shape, dtype, 1), numbers(shape, dtype, 2)
        weight, bias = (numbers(shape[1:], dtype, seed) for seed in (3, 4))
        for w, b in ((weight, bias), (weight, None), (None, None)):
            given = [None if t is None else t.numpy() for t in (w, b)]
            found = norms.layer_norm(x, w, b, shape[0], 1e-5)
            for one, other in zip(found, reference.layer_norm(x.numpy(), *given, 1e-5), strict=True):
                check(one, other)
            statistics = [t.numpy() for t in found[1:]]
            want = reference.layer_norm_gradient(gradient.numpy(), x.numpy(), *statistics, given[0])
            check(norms.layer_norm_gradient(gradient, x, *found[1:], w), want)
        sums = norms.layer_norm_weight_gradients(gradient, x, *found[1:])
        for one, other in zip(
            sums, reference.layer_norm_weight_gradients(gradient.numpy(), x.numpy(), *statistics), strict=True
        ):
            check(one, other)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize(("shape", "groups"), [((3, 6, 10), 2), ((2, 4, 300), 4), ((5, 6, 1), 3)])
def test_group_norm_is_the_reference(dtype: torch.dtype, shape: tuple[int, int, int], groups: int) -> None:
    if dtype == torch.float64 and shape[2] > 100:
        pytest.skip("the reference's fma is slow")
    x, gradient = numbers(shape, dtype, 1), numbers(shape, dtype, 2)
    weight, bias = (numbers(shape[1:2], dtype, seed) for seed in (3, 4))
    for w, b in ((weight, bias), (None, None)):
        given = [None if t is None else t.numpy() for t in (w, b)]
        found = norms.group_norm(x, w, b, groups, 1e-5)
        for one, other in zip(found, reference.group_norm(x.numpy(), *given, groups, 1e-5), strict=True):
            check(one, other)
        ours = norms.group_norm_gradient(gradient, x, *found[1:], w)
        arrays = [t.numpy() for t in (gradient, x, *found[1:])]
        for one, other in zip(ours, reference.group_norm_gradient(*arrays, given[0]), strict=True):
            check(one, other)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("shape", [(3, 6, 10), (7, 20, 1), (2, 3, 40)])
def test_channels_are_the_reference(shape: tuple[int, int, int]) -> None:
    x = numbers(shape, torch.float32, 1)
    terms = [numbers(shape[1:2], torch.float32, seed) for seed in range(3, 6)]
    want = reference.scale_channels(x.numpy(), *(t.numpy() for t in terms))
    check(norms.scale_channels(x, *terms), want)


IMAGES = [
    (20, 40, 16),  # lines of 16
    (3, 4, 240),  # chunks that begin in one piece
    (3, 6, 512),  # chunks in one piece
    (9, 5, 49),  # neither
    (7, 1, 30),  # fewer channels than threads
    (2, 9, 130),
    (300, 140, 1),  # columns
    (70, 20, 1),
    (1, 4, 33),
    (1, 1, 1),
]


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", BOTH)
def test_batch_norm_gradient_is_the_reference(dtype: torch.dtype) -> None:
    for outer, channels, inner in IMAGES:
        if dtype == torch.float64 and outer * channels * inner > 4000:
            continue  # the reference's fma is slow
        shape = outer, channels, inner
        x, gradient = numbers(shape, dtype, 1), numbers(shape, dtype, 2)
        mean, rstd, weight = (numbers(shape[1:2], dtype, seed) for seed in (3, 4, 5))
        x[0, 0, 0], gradient[-1, -1, -1] = float("inf"), -0.0
        for w, training in ((weight, True), (None, False)):
            ours = norms.batch_norm_gradient(gradient, x, (mean, rstd), w, training=training)
            statistics, of_weight = (mean.numpy(), rstd.numpy()), None if w is None else w.numpy()
            want = reference.batch_norm_gradient(
                gradient.numpy(), x.numpy(), statistics, of_weight, training=training
            )
            for one, other in zip(ours, want, strict=True):
                check(one, other)
            sums = norms.batch_norm_gradient(gradient, x, (mean, rstd), w, training=training, of_input=False)
            assert sums[0] is None
            check(sums[1], want[1])


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("shape", [(4, 6, 5, 5), (70, 20), (3, 5, 16), (1, 2, 7, 7)])
@pytest.mark.parametrize("plain", [False, True])
def test_batch_norm_is_the_reference(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    plain: bool,  # noqa: FBT001
) -> None:
    x, gradient = numbers(shape, torch.float32, 1), numbers(shape, torch.float32, 2)
    of_channels = [None if plain else numbers(shape[1:2], torch.float32, seed) for seed in (3, 4)]
    found = []
    for reference_only in (False, True):
        with monkeypatch.context() as patch:
            if reference_only:
                patch.setattr(norms, "backend_of", lambda _: ReferenceBackend())
            running = torch.zeros(shape[1]), torch.ones(shape[1])
            kept = (None, None) if plain else running
            out = batch_norm.native_batch_norm(x, *of_channels, *kept, True, 0.3, 1e-5)
            back = batch_norm.native_batch_norm_backward(
                gradient, x, of_channels[0], *kept, *out[1:], True, 1e-5, [True] * 3
            )
            found.append((*out, *back, *running))
    for one, other in zip(*found, strict=True):
        check(one, other.numpy())


@pytest.mark.parametrize("dtype", [*BOTH, torch.float16, torch.bfloat16])
def test_batch_norm_gradient_does_not_depend_on_the_layout(dtype: torch.dtype) -> None:
    """A part of channels-last memory is not contiguous itself, but its copy in float32 is channels-last."""
    whole = numbers((2, 3, 8, 5), torch.float32, 1).to(dtype, memory_format=torch.channels_last)
    gradient = numbers((2, 3, 4, 5), torch.float32, 2).to(dtype)
    of_running = torch.promote_types(dtype, torch.float32)
    gradients = []
    for x in (whole[:, :, ::2], whole[:, :, ::2].contiguous()):
        running = torch.zeros(3, dtype=of_running), torch.ones(3, dtype=of_running)
        _, mean, rstd = batch_norm.native_batch_norm(x, None, None, *running, True, 0.3, 1e-5)
        gradients.append(
            batch_norm.native_batch_norm_backward(
                gradient, x, None, *running, mean, rstd, True, 1e-5, [True] * 3
            )
        )
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("shape", [(0, 4, 5, 5), (3, 4, 0, 5)])
def test_batch_norm_of_nothing_has_gradients(shape: tuple[int, ...]) -> None:
    x, of_channels = torch.zeros(shape), torch.ones(4)
    given = (of_channels,) * 5
    of_input, of_weight, of_bias = batch_norm.native_batch_norm_backward(x, x, *given, True, 1e-5, [True] * 3)
    assert of_input is not None
    assert of_input.shape == shape
    for found in (of_weight, of_bias):
        assert found is not None
        assert torch.equal(found, torch.zeros(4))


@pytest.mark.parametrize("size", [100, 32768])
def test_no_less_accurate_than_torch(size: int) -> None:
    x = numbers((32, size), torch.float32, 9) + 1
    gradient, weight = numbers((32, size), torch.float32, 10), numbers((size,), torch.float32, 11)
    channels = x.view(8, 4, size)
    calls = {
        "softmax": (lambda v: softmax(v, 1), lambda v: torch.softmax(v, 1)),
        "log_softmax": (lambda v: softmax(v, 1, log=True), lambda v: torch.log_softmax(v, 1)),
        "layer": (
            lambda v: normalization.layer_norm(v, [size], None, None, 1e-5)[0],
            lambda v: torch.native_layer_norm(v, [size], None, None, 1e-5)[0],
        ),
        "batch": (
            lambda v: batch_norm.native_batch_norm(
                v.view_as(channels), None, None, None, None, True, 0.1, 1e-5
            )[0],
            lambda v: torch.native_batch_norm(v.view_as(channels), None, None, None, None, True, 0.1, 1e-5)[
                0
            ],
        ),
        "group": (
            lambda v: normalization.group_norm(v.view_as(channels), None, None, 8, 4, size, 2, 1e-5)[0],
            lambda v: torch.native_group_norm(v.view_as(channels), None, None, 8, 4, size, 2, 1e-5)[0],
        ),
        "layer gradient": (
            lambda v: _layer_gradient(normalization.layer_norm_backward, gradient, v, weight),
            lambda v: _layer_gradient(torch.ops.aten.native_layer_norm_backward, gradient, v, weight),
        ),
    }
    for name, (ours, plain) in calls.items():
        exact = plain(x.double())
        errors = [(found.double() - exact).abs().mean() / exact.abs().mean() for found in (ours(x), plain(x))]
        # torch sums a batch norm's statistics in float64: within a fifth of it, and no worse elsewhere
        slack = 1.2 if name == "batch" else 1.05
        assert errors[0] <= errors[1] * slack + 1e-9, (name, errors)


def _layer_gradient(function: object, gradient: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    mean, rstd = torch.native_layer_norm(x.double(), x.shape[1:], None, None, 1e-5)[1:]
    args = (t.to(x.dtype) for t in (mean, rstd, weight, weight))
    return function(gradient.to(x.dtype), x, x.shape[1:], *args, [True, False, False])[0]  # type: ignore[operator]
