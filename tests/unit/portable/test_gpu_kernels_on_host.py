"""The kernels for a GPU, built for the host, beside those for the CPU: the same bits, call by call.

The tests of tests/gpu/test_cuda_portable.py run here as well: on the CPU, with a backend that makes each call
of a kernel with both. `make test-portable` does it under sanitizers.
"""

from __future__ import annotations

import ctypes
import json
import shutil
from pathlib import Path

import host_kernels
import pytest
import torch
from host_kernels_support import built, load, shared_folder, trained

from samebits.portable import backends
from samebits.portable.backends.cuda import CudaBackend
from samebits.portable.kernels import activations, complex_numbers, contractions, elementwise

TESTS = Path(__file__).resolve().parents[2]
GOLDEN = json.loads((TESTS / "golden/portable.json").read_text())["digests"]
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
# Those that take longest are in `make test-portable` only.
QUICK = [
    "line_fit", "mlp", "conv_autoencoder", "vae", "gpt", "encoder", "graph", "citations", "spectral",
    "word_vectors", "speech", "metric", "policy", "mixture", "low_precision", "volume", "rotary", "lstm",
    "gru", "rnn",
]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels, built for the host."""
    return built(shared_folder(tmp_path_factory) / "host-kernels")


@pytest.fixture
def both(library, monkeypatch):
    """Every call of a kernel is made with both kinds.

    The threads of a block take turns from the last one on; the trainings below run from the first one on.
    """
    kernels = host_kernels.HostKernels(library, is_reversed=True)
    backend = host_kernels.beside_the_cpu(kernels)
    monkeypatch.setattr(backends, "cpu_backend", lambda: backend)
    monkeypatch.setenv("SAMEBITS_PORTABLE_DISPATCH", "mode")
    for tests in (on_gpu, convolutions):
        monkeypatch.setattr(tests, "other_bits", run_once)
    return kernels


def run_once(run, *inputs) -> list[int]:
    """Stands for the comparison of two devices: the backend compares each call."""
    run(*(x.detach().clone() for x in inputs))
    return []


on_gpu = load(TESTS / "gpu/test_cuda_portable.py")
convolutions = load(TESTS / "gpu/test_cuda_convolutions.py")


class TestAsOnAGpu:
    """The tests of a GPU that need none."""

    pytestmark = pytest.mark.usefixtures("both")

    test_reductions = staticmethod(on_gpu.test_reductions)
    test_many_axes = staticmethod(on_gpu.test_a_reduction_of_more_axes_than_a_launch_takes)
    test_norms_and_softmax = staticmethod(on_gpu.test_norms_and_softmax)
    test_attention = staticmethod(on_gpu.test_attention)
    test_accumulation = staticmethod(on_gpu.test_accumulation)
    test_large_products = staticmethod(on_gpu.test_large_products)
    test_many_rows = staticmethod(on_gpu.test_more_rows_than_a_grid_has)
    test_no_outputs = staticmethod(on_gpu.test_long_products_of_no_outputs)
    test_chains_in_portions = staticmethod(on_gpu.test_chains_in_portions)
    test_convolutions = staticmethod(convolutions.test_convolutions)
    test_tiles = staticmethod(convolutions.test_tiles)
    test_shares = staticmethod(convolutions.test_chains_in_portions)
    test_random_values = staticmethod(on_gpu.test_random_values)
    test_ops = staticmethod(on_gpu.test_ops)
    test_layers = staticmethod(on_gpu.test_layers)
    test_packed_sequences = staticmethod(on_gpu.test_packed_sequences)
    test_clipping = staticmethod(on_gpu.test_clipping)
    test_optimizers = staticmethod(on_gpu.test_optimizers)
    test_options_of_optimizers = staticmethod(on_gpu.test_options_of_optimizers)


@pytest.mark.parametrize("case", ["every other", "one tap of four", "dilated", "depthwise", "long"])
def test_zeros_that_an_infinite_weight_meets(case, library):
    """Kernels of a GPU look for such weights themselves; those of the CPU get the zeros written out."""
    image, _, bias, weight = convolutions.tensors(case, torch.float32)
    _, sizes, kernel, geometry, _ = convolutions.CASES[case]
    weight.view(-1)[weight.numel() // 2] = torch.inf
    grown = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(sizes, *geometry[:3], kernel, strict=True)
    )
    expected = contractions.convolve_transposed(image, weight, bias, geometry, grown)
    found = torch.empty_like(expected)
    backend = CudaBackend(
        host_kernels.IN_CPU_MEMORY, host_kernels.HostKernels(library), backends.cpu_backend()
    )
    backend.convolve_transposed(image, weight, bias, geometry, found)

    assert expected.isnan().any()
    assert host_kernels.has_same_bits(expected, found)


def values(dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Numbers of many sizes, any bits, and special ones; more than the threads of a launch."""
    torch.manual_seed(seed)
    whole = torch.int32 if dtype is torch.float32 else torch.int64
    any_bits = torch.randint(-(2**31), 2**31, (700,)).to(whole)
    if dtype is torch.float64:
        any_bits = any_bits << 32 | torch.randint(0, 2**32, (700,))
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1, -1, 0.5], dtype=dtype)
    sizes = torch.randn(700, dtype=dtype) * torch.exp2(torch.randint(-20, 20, (700,)).to(dtype))
    return torch.cat([any_bits.view(dtype), special, sizes, torch.rand(700, dtype=dtype)])[
        torch.randperm(2108)
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_functions(both, dtype):
    """Every function of one, two and three numbers."""
    x, y, z = (values(dtype, seed) for seed in (1, 2, 3))
    for name in elementwise.UNARY:
        elementwise.unary(name, x)
    for name in elementwise.BINARY:
        elementwise.binary(name, x, y)
    for name in activations.NAMES:
        activations.pointwise(name, x, y, z, params=(0.75, 1.5, -0.25, 2.0))
    elementwise.sqrt(x)
    complex_numbers.product(torch.complex(x, y), torch.complex(y, z))
    complex_numbers.divided(torch.complex(x, y), torch.complex(y, z))

    assert len(both.launched) == len([*elementwise.UNARY, *elementwise.BINARY, *activations.NAMES]) + 3


def test_a_difference_is_seen(both, monkeypatch):
    """One bit of one number."""
    launch = host_kernels.HostKernels.launch_tiles

    def wrong(self, unit, name, parameters, *rest):
        launch(self, unit, name, parameters, *rest)
        flip(parameters.out)

    monkeypatch.setattr(host_kernels.HostKernels, "launch_tiles", wrong)
    with pytest.raises(AssertionError, match=r"unary: tensor 1 of \(2108,\), torch\.float32"):
        elementwise.unary("exp", values(torch.float32, 1))


def flip(address: int) -> None:
    """Change the lowest bit of the number there."""
    ctypes.c_int32.from_address(address).value ^= 1


def test_trainings_have_the_golden_digests(library):
    """Each call compared, and the digests of the CPU at the end; sparse matrices and autocast too."""
    found = trained(library, *QUICK)

    assert found["digests"] == {name: GOLDEN[name] for name in QUICK}
    assert {"conv_f32", "lstm_step_f32", "adam_f32", "window_f32", "attention_weights_f32"} <= set(
        found["launched"]
    )
