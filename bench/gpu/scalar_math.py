"""The scalar mathematics on the device beside the CPU's kernels, bit for bit.

    python bench/gpu/scalar_math.py --out DIR [--values N] [--exhaustive NAME,NAME]

A row: function, dtype, values compared, mismatches, an example. NaNs are one value
(docs/reference/portable-numerics.md); `nan_bits` counts NaNs of other bits than the CPU's.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from outcome import Part, run_part

from samebits.portable.backends import backend_of, cpu_backend
from samebits.portable.kernels import activations, random
from samebits.portable.kernels.elementwise import BINARY, UNARY, binary, sqrt, unary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUFFIXES = {torch.float32: "f32", torch.float64: "f64"}
WHOLE = {torch.float32: torch.int32, torch.float64: torch.int64}
RANDOM_KEY = 0x0123456789ABCDEF
ACTIVATION_PARAMETERS = (1.25, 0.75, 1.5, 0.5)


class Compared(NamedTuple):
    """How many values differ; the first that does.

    Args:
        mismatches: values with other bits, two NaNs aside.
        nan_bits: pairs of NaNs with different bits.
        first: index of the first mismatch, or -1.
    """

    mismatches: int
    nan_bits: int
    first: int


def special_values(dtype: torch.dtype) -> np.ndarray:
    """Return zeros, infinities, NaN, bounds of the exponents, and numbers near those where functions turn."""
    kind = np.float32 if dtype == torch.float32 else np.float64
    limits = np.finfo(kind)
    near = [
        1,
        2,
        0.5,
        0.25,
        np.pi,
        np.pi / 2,
        np.pi / 4,
        np.e,
        7,
        13,
        20,
        88.7,
        89,
        104,
        128,
        150,
        709.78,
        746,
        1e4,
    ]
    named = [0, limits.smallest_subnormal, limits.tiny, limits.max, limits.eps, np.inf, np.nan, *near]
    powers = np.ldexp(np.ones((), kind), np.arange(limits.minexp - limits.nmant, limits.maxexp)).astype(kind)
    base = np.concatenate([np.array(named, kind), powers, np.arange(0, 64, dtype=kind) / 4])
    with np.errstate(all="ignore"):
        beside = np.concatenate([base, np.nextafter(base, kind(0)), np.nextafter(base, kind(np.inf))])
    return np.concatenate([beside, -beside])


def sample(dtype: torch.dtype, count: int, seed: int) -> torch.Tensor:
    """Return `count` values: special ones, then a third each of random bits, normal ones, and wide ones."""
    rng = np.random.default_rng(seed)
    kind, whole = (np.float32, np.uint32) if dtype == torch.float32 else (np.float64, np.uint64)
    third = count // 3 + 1
    with np.errstate(all="ignore"):
        parts = [
            special_values(dtype),
            rng.integers(0, np.iinfo(whole).max, third, dtype=whole, endpoint=True).view(kind),
            rng.standard_normal(third).astype(kind),
            (rng.standard_normal(third) * np.exp2(rng.integers(-12, 12, third).astype(float))).astype(kind),
        ]
    return torch.from_numpy(np.concatenate(parts)[:count].copy())


def pairs(dtype: torch.dtype, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return arguments of functions of two numbers; among them each special value with some others."""
    x, y = sample(dtype, count, 3), sample(dtype, count, 4).flip(0)
    special = torch.from_numpy(special_values(dtype))
    few = special[torch.linspace(0, len(special) - 1, 64).long()]
    crossed = min(count, len(special) * len(few))
    x[:crossed] = special.repeat_interleave(len(few))[:crossed]
    y[:crossed] = few.repeat(len(special))[:crossed]
    return x, y


def compare(result: torch.Tensor, expected: torch.Tensor) -> Compared:
    """Compare a result on the device with the CPU's, by bits."""
    wanted = expected.to(result.device)
    if result.is_floating_point():
        whole = WHOLE[result.dtype]
        unequal = result.view(whole) != wanted.view(whole)
        both_nan = result.isnan() & wanted.isnan()
    else:
        unequal, both_nan = result != wanted, torch.zeros_like(result, dtype=torch.bool)
    wrong = unequal & ~both_nan
    count = int(wrong.sum())
    return Compared(count, int((unequal & both_nan).sum()), int(wrong.int().argmax()) if count else -1)


def unary_cases(dtype: torch.dtype, count: int) -> Iterator[tuple[str, Compared, str]]:
    """Compare all functions of one number."""
    x = sample(dtype, count, 1)
    on_device = x.cuda()
    for name in (*UNARY, "sqrt"):
        yield name, *_judged(of_one(name, on_device), of_one(name, x), (x,))


def of_one(name: str, x: torch.Tensor) -> torch.Tensor:
    """Return a function of one number, computed where `x` lies."""
    return sqrt(x) if name == "sqrt" else unary(name, x)


def binary_cases(dtype: torch.dtype, count: int) -> Iterator[tuple[str, Compared, str]]:
    """Compare all functions of two numbers."""
    x, y = pairs(dtype, count)
    on_device = (x.cuda(), y.cuda())
    for name in BINARY:
        yield name, *_judged(binary(name, *on_device), binary(name, x, y), (x, y))


def activation_cases(dtype: torch.dtype, count: int) -> Iterator[tuple[str, Compared, str]]:
    """Compare all activations, losses and scaled sums, with one set of parameters."""
    inputs = tuple(sample(dtype, count, seed) for seed in (5, 6, 7))
    mixed = (inputs[0], inputs[1].roll(count // 5), inputs[2].roll(count // 3))
    on_device = tuple(tensor.cuda() for tensor in mixed)
    for name in activations.NAMES:
        found, expected = (
            activations.pointwise(name, *given, params=ACTIVATION_PARAMETERS) for given in (on_device, mixed)
        )
        yield name, *_judged(found, expected, mixed)


DRAWS: dict[str, tuple[torch.dtype, Callable[[torch.Tensor], None]]] = {
    "uniform_f32": (
        torch.float32,
        lambda out: random.uniform_into(out, RANDOM_KEY, -2.5, 3.25, torch.float32),
    ),
    "uniform_f64": (
        torch.float64,
        lambda out: random.uniform_into(out, RANDOM_KEY, -2.5, 3.25, torch.float64),
    ),
    "normal_f32": (torch.float32, lambda out: random.normal_into(out, RANDOM_KEY, 0.5, 1.75)),
    "normal_f64": (torch.float64, lambda out: random.normal_into(out, RANDOM_KEY, 0.5, 1.75)),
    "exponential_f32": (torch.float32, lambda out: random.exponential_into(out, RANDOM_KEY, 1.5)),
    "exponential_f64": (torch.float64, lambda out: random.exponential_into(out, RANDOM_KEY, 1.5)),
}


def random_cases(count: int) -> Iterator[tuple[str, Compared, str]]:
    """Compare the words of Philox, and all values that are made of them; an odd number of each."""
    words, found = (torch.empty(count // 2, dtype=torch.int64, device=device) for device in ("cpu", "cuda"))
    for out in (words, found):
        settings = random.Settings(size=2 * out.numel())
        backend_of(out).fill_random(random.Kind.WORDS, out, RANDOM_KEY, settings)
    yield "philox words", *_judged(found, words, ())
    for name, (dtype, draw) in DRAWS.items():
        expected = torch.empty(count // 4 * 4 + 1, dtype=dtype)
        out = torch.empty_like(expected, device="cuda")
        draw(expected)
        draw(out)
        yield name, *_judged(out, expected, ())


def exhaustive_case(name: str, chunk: int = 1 << 27) -> Compared:
    """Compare a function of one number for all 2^32 bit patterns of float32."""
    wrong = nan_bits = 0
    first = -1
    for start in range(-(1 << 31), 1 << 31, chunk):
        on_cpu, on_device = (
            torch.arange(start, start + chunk, dtype=torch.int32, device=device).view(torch.float32)
            for device in ("cpu", "cuda")
        )
        found = compare(of_one(name, on_device), of_one(name, on_cpu))
        wrong, nan_bits = wrong + found.mismatches, nan_bits + found.nan_bits
        first = start + found.first & 0xFFFFFFFF if first < 0 <= found.first else first
    return Compared(wrong, nan_bits, first)


def _exhaustive(name: str) -> Iterator[tuple[str, Compared, str]]:
    found = exhaustive_case(name)
    yield name, found, f"bits {found.first:#x}" if found.first >= 0 else ""


def _judged(
    result: torch.Tensor, expected: torch.Tensor, inputs: tuple[torch.Tensor, ...]
) -> tuple[Compared, str]:
    """Compare, and describe the first mismatch by its input, the device's value and the CPU's."""
    found = compare(result, expected)
    if found.first < 0:
        return found, ""
    at = found.first
    given = ", ".join(repr(tensor[at].item()) for tensor in inputs)
    return found, f"f({given}) device {result[at].item()!r} CPU {expected[at].item()!r}"


def _rows(part: Part, dtype: str, cases: Iterator[tuple[str, Compared, str]], count: int) -> None:
    for name, found, example in cases:
        part.row(
            function=name,
            dtype=dtype,
            values=count,
            mismatches=found.mismatches,
            nan_bits=found.nan_bits,
            example=example,
        )


def compare_all(part: Part, arguments: argparse.Namespace) -> None:
    """Compare everything; what fails in one family leaves the others."""
    backend = type(cpu_backend()).__name__
    part.note(device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda)
    part.note(cpu_kernels=backend, threads=torch.get_num_threads())
    # The reference in Python takes a thousand times as long.
    count = arguments.values if backend == "NativeBackend" else min(arguments.values, 1 << 14)
    for dtype, suffix in SUFFIXES.items():
        part.attempt(
            f"unary {suffix}", lambda d=dtype, s=suffix: _rows(part, s, unary_cases(d, count), count)
        )
        part.attempt(
            f"binary {suffix}", lambda d=dtype, s=suffix: _rows(part, s, binary_cases(d, count), count)
        )
    for name in filter(None, arguments.exhaustive.split(",")):
        part.attempt(name, lambda n=name: _rows(part, "f32", _exhaustive(n), 1 << 32))
    part.attempt("random", lambda: _rows(part, "-", random_cases(count), count))
    for dtype, suffix in SUFFIXES.items():
        part.attempt(
            f"activations {suffix}",
            lambda d=dtype, s=suffix: _rows(part, s, activation_cases(d, count), count),
        )


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=1 << 24, help="values for each function")
    parser.add_argument("--exhaustive", default="", help="functions of one number, for all float32 numbers")
    run_part("scalar", parser, compare_all)


if __name__ == "__main__":
    main()
