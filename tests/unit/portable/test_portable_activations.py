"""The kernels of activations, elementwise losses and scaled sums: C against the reference, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from samebits.portable.backends.library import load
from samebits.portable.kernels.activations import NAMES, pointwise, pointwise_
from samebits.portable.reference import activations as reference

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-40,
    3e38,
    -3e38,
    20.0,
    -3.0,
    3.0,
    7.0,
    -7.0,
]
PARAMETERS = {
    "elu": (1.3, 1.1, 0.7),
    "elu_backward": (1.3, 1.1, 0.7),
    "elu_backward_of_result": (1.3, 1.1, 0.7),
    "softplus": (1.7, 3.0),
    "softplus_backward": (1.7, 3.0),
}


def _inputs_of(name: str) -> int:
    code = reference.FUNCTIONS[name].__code__
    return code.co_argcount - 1


def _values(count: int, dtype: torch.dtype, seed: int) -> list[torch.Tensor]:
    rng = np.random.default_rng(seed)
    columns = []
    for _ in range(count):
        some = np.concatenate([rng.normal(size=400) * 4, rng.uniform(size=100), rng.choice(SPECIAL, 200)])
        columns.append(torch.from_numpy(rng.permutation(some)).to(dtype))
    return columns


def _bits(tensor: torch.Tensor) -> np.ndarray:
    values = tensor.numpy().copy()
    values[np.isnan(values)] = np.nan
    return values.view(np.int32 if values.dtype == np.float32 else np.int64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_kernels_give_the_bits_of_the_reference(isa: str, dtype: torch.dtype) -> None:
    for name in NAMES:
        inputs = _values(_inputs_of(name), dtype, len(name))
        params = PARAMETERS.get(name, (0.6, 0.9))
        ours = pointwise(name, *inputs, params=params)
        expected = reference.pointwise(name, [tensor.numpy() for tensor in inputs], params)
        different = np.flatnonzero(_bits(ours) != _bits(torch.from_numpy(expected)))
        assert not len(different), (isa, name, [t[different[:3]] for t in inputs], ours[different[:3]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_results_over_an_input_are_the_same(isa: str, dtype: torch.dtype) -> None:
    """Over the first one, beside others, a number among them, and itself; in more than one piece."""
    for name in NAMES:
        first, *others = (torch.cat([values] * 4) for values in _values(_inputs_of(name), dtype, len(name)))
        params = PARAMETERS.get(name, (0.6, 0.9))
        for rest in (others, [other[5] for other in others], [first] * len(others)):
            expected = pointwise(name, first, *rest, params=params)
            kept = first.clone()
            pointwise_(name, kept, *(kept if other is first else other for other in rest), params=params)
            assert np.array_equal(_bits(kept), _bits(expected)), (isa, name)


def test_threads_give_the_same_bits(isa: str) -> None:
    kernels = load()
    assert kernels is not None
    rng = np.random.default_rng(3)
    x, g = (torch.from_numpy(rng.normal(size=40_001).astype(np.float32) * 3) for _ in range(2))
    for name in ("gelu_backward", "softplus", "mse"):
        kernels.set_threads(1)
        one = pointwise(name, x, g, params=(1.0, 20.0))
        kernels.set_threads(2)
        assert torch.equal(one, pointwise(name, x, g, params=(1.0, 20.0))), isa


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (5, 7), (2, 3, 4, 5)], ids=str)
def test_shapes_and_strides_do_not_change_a_value(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x, y = (torch.from_numpy(rng.normal(size=shape).astype(np.float32)) for _ in range(2))
    plain = pointwise("huber", x, y, params=(0.5,))
    assert plain.shape == x.shape
    turned = pointwise("huber", x.mT.contiguous().mT if x.dim() > 1 else x, y, params=(0.5,))
    assert torch.equal(turned, plain)
    wide = torch.stack([x, x], -1)[..., 0]
    assert torch.equal(pointwise("huber", wide, y, params=(0.5,)), plain)


def test_inputs_of_one_value_or_one_row_are_broadcast() -> None:
    rng = np.random.default_rng(2)
    x, row = (torch.from_numpy(rng.normal(size=size)) for size in ((6, 5), 5))
    scalar = torch.tensor(0.3, dtype=torch.float64)
    full = pointwise("lerp", x, row.expand(6, 5).contiguous(), scalar.expand(6, 5).contiguous())
    assert torch.equal(pointwise("lerp", x, row, scalar), full)
    assert pointwise("lerp", scalar, row, x).shape == (6, 5)


def test_channels_last_is_kept() -> None:
    x = torch.linspace(-2, 2, 2 * 3 * 4 * 4).view(2, 3, 4, 4).to(memory_format=torch.channels_last)
    out = pointwise("silu", x)
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(out, pointwise("silu", x.contiguous()))


def test_gelu_in_float32_is_closer_than_torch() -> None:
    scipy = pytest.importorskip("scipy.special")
    x = torch.linspace(-6, 6, 100_001)
    exact = x.double().numpy() * scipy.ndtr(x.double().numpy())

    def error(values: torch.Tensor) -> float:
        return float(np.mean(np.abs(values.double().numpy() - exact) / np.maximum(np.abs(exact), 1e-30)))

    assert error(pointwise("gelu", x)) < 1e-6 < error(torch.nn.functional.gelu(x))
