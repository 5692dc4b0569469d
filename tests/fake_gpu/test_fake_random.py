"""The generator of the fake device moves as far as that of an H200 does."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

pytestmark = pytest.mark.gpu

# Threads that draw at once: 132 multiprocessors of 2048. Each takes 4 numbers, and moves the generator by 4.
AT_ONCE = 132 * 2048
ELEMENTS = 10


def moved_by(call):
    """By how much the generator moves."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.get_offset()
    call()
    return generator.get_offset() - before


def new(elements, dtype=torch.float32):
    return torch.full((elements,), 0.3, device="cuda", dtype=dtype)


@pytest.mark.parametrize(
    ("elements", "moved"), [(0, 0), (1, 4), (4 * AT_ONCE, 4), (4 * AT_ONCE + 1, 8), (8 * AT_ONCE + 1, 12)]
)
@pytest.mark.parametrize(
    "draw",
    [
        lambda n: new(n).uniform_(),
        lambda n: torch.randn(n, device="cuda"),
        lambda n: torch.randint(5, (n,), device="cuda"),
        lambda n: functional.dropout(new(n)),
        lambda n: new(n).exponential_(),
    ],
    ids=["uniform", "normal", "integers", "dropout", "exponential"],
)
def test_by_the_number_of_elements(draw, elements, moved):
    """`calc_execution_policy` in ATen/native/cuda/DistributionTemplates.h (PyTorch 2.15)."""
    torch.cuda.init()
    assert moved_by(lambda: draw(elements)) == moved


def test_numbers_of_64_bits_are_drawn_two_at_a_time():
    assert moved_by(lambda: torch.rand(4 * AT_ONCE, device="cuda", dtype=torch.float64)) == 8


@pytest.mark.parametrize(
    ("draw", "moved"),
    [
        (torch.bernoulli, 12),
        (torch.poisson, 20),
        (lambda x: torch.binomial(x.round() * 10, x), 44),
        (lambda x: torch.normal(x, x), 4),
        (lambda x: torch.multinomial(x, 3), 4),
    ],
    ids=["bernoulli", "poisson", "binomial", "normal", "multinomial"],
)
def test_by_the_op(draw, moved):
    """Ops with a number of their own, which torch rounds up to a multiple of four."""
    assert moved_by(lambda: draw(new(ELEMENTS))) == moved


def test_by_the_dropout_of_attention():
    """Each weight has a number; without dropout none is drawn, nor for gradients."""
    q = torch.rand(2, 3, 8, 16, device="cuda", requires_grad=True)

    def attend(dropout):
        return functional.scaled_dot_product_attention(q, q, q, dropout_p=dropout)

    assert moved_by(lambda: attend(0.0)) == 0
    assert moved_by(lambda: attend(0.5)) == 2 * 3 * 8 * 8
    output = attend(0.5).sum()
    assert moved_by(output.backward) == 0


def test_attention_of_cudnn_draws_for_its_dropout_only():
    """By how much is not known here."""
    q = torch.rand(2, 3, 8, 16, device="cuda", dtype=torch.float16, requires_grad=True)
    attend = torch.ops.aten._scaled_dot_product_cudnn_attention

    assert moved_by(lambda: attend(q, q, q, None, True)) == 0
    assert moved_by(lambda: attend(q, q, q, None, True, 0.5)) > 0
    output = attend(q, q, q, None, True, 0.5)[0].sum()
    assert moved_by(output.backward) == 0


def test_a_generator_that_is_given_moves_instead():
    generator = torch.Generator("cuda").manual_seed(3)
    assert moved_by(lambda: torch.poisson(new(ELEMENTS), generator)) == 0
    assert moved_by(lambda: new(ELEMENTS).normal_(generator=generator)) == 0
    assert generator.get_offset() == 24


def test_each_call_draws_other_numbers_and_the_same_state_the_same():
    torch.cuda.manual_seed(3)
    state = torch.cuda.get_rng_state()
    first, second = new(ELEMENTS).uniform_(), new(ELEMENTS).uniform_()
    torch.cuda.set_rng_state(state)
    assert torch.equal(new(ELEMENTS).uniform_(), first)
    assert not torch.equal(first, second)


def test_kernels_of_torch_are_refused_again_afterwards():
    """They do nothing only while torch's function is rehearsed."""
    new(ELEMENTS).uniform_()
    runtime = torch._fake_gpu[0]._runtime
    assert runtime.cudaLaunchKernel() == 801
    runtime.cudaGetLastError()
