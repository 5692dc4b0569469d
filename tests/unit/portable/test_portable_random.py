"""Philox words and the values made of them: C against the reference, on every instruction set."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from samebits.portable.backends.library import load
from samebits.portable.kernels import random as kernels
from samebits.portable.reference import random as reference

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = 0x9123456789ABCDEF
COUNTS = (1, 2, 3, 511, 512, 1023, 1024, 1025, 40_001)
ANSWERS = [  # of Random123 (kat_vectors, philox4x32 10)
    ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
needs_log = pytest.mark.skipif(
    importlib.util.find_spec("samebits.portable.reference.elementary") is None, reason="no log"
)


@pytest.fixture(params=["scalar", "neon", "avx2", "avx512"])
def native(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The kernels on one instruction set, with two threads."""
    found = load()
    if found is None or not found.select(request.param):
        pytest.skip(f"no {request.param} here")
    found.set_threads(2)
    yield found
    found.set_threads(1)
    found.select("")


def _numbers(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), ANSWERS)
def test_known_answers_of_the_reference(counter: str, key: str, answer: str) -> None:
    low, up = _numbers(key)
    drawn = reference.philox(up << 32 | low, np.array([_numbers(counter)], np.uint32))
    assert drawn[0].tolist() == _numbers(answer)


@pytest.mark.parametrize(("counter", "key", "answer"), ANSWERS)
def test_known_answers_of_the_kernels(native: Any, counter: str, key: str, answer: str) -> None:
    c, (low, up) = _numbers(counter), _numbers(key)
    signed = [(value + 2**63) % 2**64 - 2**63 for value in (up << 32 | low, c[1] << 32 | c[0])]
    out = torch.zeros(4, dtype=torch.int32)
    native.random(
        kind=kernels.Kind.WORDS,
        out=out.data_ptr(),
        numel=4,
        key=signed[0],
        first=signed[1],
        stream=c[2],
        lane=c[3],
        bits=0,
        low=0,
        source=0,
        a=0.0,
        b=0.0,
    )
    assert out.numpy().view(np.uint32).tolist() == _numbers(answer)


@pytest.mark.parametrize("count", COUNTS)
def test_uniform(native: Any, count: int) -> None:
    for dtype, bits in ((torch.float32, 24), (torch.float16, 11), (torch.bfloat16, 8)):
        out = torch.empty(count)
        kernels.uniform_into(out, KEY, -0.3, 0.7, dtype)
        np.testing.assert_array_equal(out.numpy(), reference.uniform_f32(KEY, count, bits, -0.3, 0.7))
    wide = torch.empty(count, dtype=torch.float64)
    kernels.uniform_into(wide, KEY, -0.3, 0.7, torch.float64)
    np.testing.assert_array_equal(wide.numpy(), reference.uniform_f64(KEY, count, -0.3, 0.7))


@pytest.mark.parametrize("count", COUNTS)
def test_bernoulli(native: Any, count: int) -> None:
    for p in (0.0, 1e-9, 0.3, 1.0):
        for dtype in (torch.float32, torch.uint8):
            out = torch.empty(count, dtype=dtype)
            kernels.bernoulli_into(out, KEY, p)
            np.testing.assert_array_equal(out.numpy(), reference.bernoulli(KEY, count, np.float64(p)))
    for dtype in (torch.float32, torch.float64):
        each = torch.linspace(0, 1, count, dtype=dtype)
        np.testing.assert_array_equal(
            kernels.bernoulli_each(each, KEY).numpy(),
            reference.bernoulli(KEY, count, each.double().numpy()),
        )


@pytest.mark.parametrize(
    ("low", "size"), [(0, 10), (-5, 1), (-(2**63), 2**64), (-(2**63), 2**63 + 12345), (3, 2**40 + 3)]
)
def test_integers(native: Any, low: int, size: int) -> None:
    for count in COUNTS[:-1]:
        out = torch.empty(count, dtype=torch.int64)
        kernels.integers_into(out, KEY, low, size)
        np.testing.assert_array_equal(out.numpy(), reference.integers(KEY, count, low, size))
    np.testing.assert_array_equal(
        kernels.words64(KEY, 777).numpy().view(np.uint64), reference.words64(KEY, 777)
    )


@needs_log
@pytest.mark.parametrize("count", [1, 2, 3, 1025])
def test_normal_and_exponential(native: Any, count: int) -> None:
    for dtype, wide in ((torch.float32, False), (torch.float64, True)):
        out = torch.empty(count, dtype=dtype)
        kernels.normal_into(out, KEY, 0.25, 3.0)
        np.testing.assert_array_equal(out.numpy(), reference.normal(KEY, count, wide, 0.25, 3.0))
        kernels.exponential_into(out, KEY, 1.5)
        np.testing.assert_array_equal(out.numpy(), reference.exponential(KEY, count, wide, 1.5))


def test_normal_and_exponential_are_the_same_on_all_instruction_sets_and_threads(native: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        for fill, parameters in ((kernels.normal_into, (0.1, 2.0)), (kernels.exponential_into, (0.7,))):
            for count in COUNTS:
                here, plain = torch.empty(count, dtype=dtype), torch.empty(count, dtype=dtype)
                native.set_threads(2)
                fill(here, KEY, *parameters)  # type: ignore[operator]
                isa = native.isa
                native.set_threads(1)
                native.select("scalar")
                fill(plain, KEY, *parameters)  # type: ignore[operator]
                native.select(isa)
                assert torch.equal(here, plain)


def test_a_shorter_tensor_is_the_beginning_of_a_longer_one(native: Any) -> None:
    longer, shorter = torch.empty(5000), torch.empty(1001)
    kernels.normal_into(longer, KEY, 0.0, 1.0)
    kernels.normal_into(shorter, KEY, 0.0, 1.0)
    assert torch.equal(longer[:1001], shorter)


def test_bounds_are_kept() -> None:
    assert sorted(
        {
            float(v)
            for v in reference._between(
                np.array([0.0, 1 - 2.0**-24], np.float32), np.float32(1), np.float32(1 + 2.0**-23)
            )
        }
    ) == [1.0]
    assert reference.unit(np.array([0, 2**32 - 1], np.uint32)).tolist() == [2.0**-32, 1.0]


def test_distributions_have_their_shape() -> None:
    stats = pytest.importorskip("scipy.stats")
    out = torch.empty(100_000, dtype=torch.float64)
    single = torch.empty(100_000)
    for values in (out, single):
        kernels.uniform_into(values, KEY, 0.0, 1.0, values.dtype)
        assert stats.kstest(values.double().numpy(), "uniform").pvalue > 1e-3
        kernels.normal_into(values, KEY + 1, 0.0, 1.0)
        assert stats.kstest(values.double().numpy(), "norm").pvalue > 1e-3
        pairs = values.view(-1, 2)
        assert abs(float(np.corrcoef(pairs[:, 0].numpy() ** 2, pairs[:, 1].numpy() ** 2)[0, 1])) < 0.02
        kernels.exponential_into(values, KEY + 2, 1.0)
        assert stats.kstest(values.double().numpy(), "expon").pvalue > 1e-3
