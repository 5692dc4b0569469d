"""Speed of portable mode beside plain torch, in one run: ratios of best times, the jobs taking turns.

    python bench/portable.py [--only FAMILY ...] [--threads N ...] [--rounds N]

A ratio above 1 is slower than torch. The bits do not depend on the number of threads, the times do. Machines
are shared and noisy: a round measures both jobs of a case once, and the load is printed.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import os
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from samebits.portable._dispatch import PortableMode
from samebits.portable.backends.library import load
from samebits.portable.kernels.contractions import gemm
from samebits.portable.ops import activations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SECONDS_EACH = 0.6

NAIVE = r"""
#include <math.h>
void naive(const float *a, const float *b, float *c, long m, long n, long k) {
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            float total = 0;
            for (long from = 0; from < k; from += 128) {
                float chain = 0;
                for (long t = from; t < from + 128 && t < k; t++)
                    chain = fmaf(a[i * k + t], b[t * n + j], chain);
                total += chain;
            }
            c[i * n + j] = total;
        }
}
"""


@dataclass(frozen=True)
class Case:
    """One line of a table.

    Args:
        name: what is computed.
        plain: the job in plain torch.
        ours: the same in portable numerics.
        flops: floating point operations of it, 0 where they say nothing.
        mode: what `ours` runs in: it is entered beforehand, as a script does once.
    """

    name: str
    plain: Callable[[], object]
    ours: Callable[[], object]
    flops: int = 0
    mode: AbstractContextManager[object] = field(default_factory=nullcontext)


def matrix(
    rows: int, columns: int, *, turned: bool = False, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Normal values; `turned` ones lie in memory column by column."""
    return torch.randn(columns, rows, dtype=dtype).t() if turned else torch.randn(rows, columns, dtype=dtype)


def product(m: int, n: int, k: int, layout: str = "NN", dtype: torch.dtype = torch.float32) -> Case:
    """`a @ b`; T in the layout is an operand that lies column by column, as a weight in `linear` does."""
    a = matrix(m, k, turned=layout[0] == "T", dtype=dtype)
    b = matrix(k, n, turned=layout[1] == "T", dtype=dtype)
    kind = "" if dtype == torch.float32 else " float64"
    name = f"{m}x{k} by {k}x{n} {layout}{kind}"
    return Case(name, lambda: torch.mm(a, b), lambda: gemm(a, b), 2 * m * n * k)


def large_products() -> Iterator[Case]:
    """Square matrices; the target is 1.1."""
    for size in (256, 512, 1024, 2048):
        yield product(size, size, size)
    for layout in ("NT", "TN", "TT"):
        yield product(512, 512, 512, layout)
    yield product(512, 512, 512, dtype=torch.float64)


def vectors() -> Iterator[Case]:
    """A matrix by a vector, or few of them; the target is 1.3."""
    for size in (512, 2048):
        for layout in ("NN", "NT"):
            yield product(1, size, size, layout)
            yield product(size, 1, size, layout[::-1])
    yield product(1, 4096, 1024, "NT")
    yield product(8, 2048, 512, "NT")
    yield product(2048, 4, 512)
    yield product(1, 1, 100000)


def small_products() -> Iterator[Case]:
    """Layers of small models, forward and backward: a call's own cost counts here."""
    for m, n, k, layout in (
        (8, 1, 100, "NT"),
        (100, 1, 8, "TN"),
        (8, 8, 8, "NN"),
        (32, 32, 32, "NN"),
        (64, 64, 64, "NN"),
        (64, 512, 512, "NT"),
        (32, 128, 784, "NT"),
        (128, 784, 32, "TN"),
        (32, 784, 128, "NN"),
        (256, 10, 1024, "NT"),
    ):
        yield product(m, n, k, layout)
    q, keys = torch.randn(16, 128, 64), torch.randn(16, 128, 64).transpose(1, 2)
    yield Case(
        "16 of 128x64 by 64x128 NT",
        lambda: torch.bmm(q, keys),
        lambda: gemm(q, keys),
        2 * 16 * 128 * 128 * 64,
    )


def elementwise() -> Iterator[Case]:
    """GELU and its gradient for the hidden layer of a transformer; a step of Adam of a million values."""
    x, gradient = torch.randn(8 * 128, 896), torch.randn(8 * 128, 896)
    aten = torch.ops.aten
    for kind in ("none", "tanh"):
        yield Case(
            f"GELU ({kind}) of 1024x896",
            lambda kind=kind: aten.gelu(x, approximate=kind),  # type: ignore[misc]
            lambda kind=kind: activations.gelu(x, approximate=kind),  # type: ignore[misc]
        )
        yield Case(
            f"GELU ({kind}), gradient",
            lambda kind=kind: aten.gelu_backward(gradient, x, approximate=kind),  # type: ignore[misc]
            lambda kind=kind: activations.gelu_backward(gradient, x, approximate=kind),  # type: ignore[misc]
        )
    for fused in (False, True):
        plain, ours = adam(fused=fused), adam(fused=fused)
        yield Case(f"Adam of 1024x1024{', fused' * fused}", plain.step, ours.step, mode=PortableMode())


def functions() -> Iterator[Case]:
    """Functions of each element of a large tensor."""
    x = torch.randn(32, 64, 16, 16)
    for function in (torch.exp, torch.tanh, torch.sigmoid):
        job = functools.partial(function, x)
        yield Case(f"{function.__name__} of 32x64x16x16", job, job, mode=PortableMode())


def decompositions() -> Iterator[Case]:
    """Eigenvalues and singular values, which portable mode finds by rotations."""
    for n in (32, 128):
        a = matrix(n, n)
        for find in (torch.linalg.eigh, torch.linalg.svd):
            job = functools.partial(find, a)
            yield Case(f"{find.__name__.removeprefix('linalg_')} of {n}x{n}", job, job, mode=PortableMode())


def transforms() -> Iterator[Case]:
    """Fourier transforms: about as many numbers each, in rows, along columns, and real ones."""
    mode = PortableMode()
    for n in (64, 256, 1024, 4096, 16384, 65536, 1000, 1021):
        rows = max(1, 65536 // n)
        z, x = torch.randn(rows, n, dtype=torch.complex64), torch.randn(rows, n)
        for name, job in (
            ("fft", functools.partial(torch.fft.fft, z)),
            ("rfft", functools.partial(torch.fft.rfft, x)),
            ("irfft", functools.partial(torch.fft.irfft, torch.fft.rfft(x), n)),
        ):
            yield Case(f"{name} of {rows}x{n}", job, job, mode=mode)
    image = torch.randn(8, 3, 128, 128)
    job = functools.partial(torch.fft.rfft2, image)
    yield Case("rfft2 of 8x3x128x128", job, job, mode=mode)


def complex_numbers() -> Iterator[Case]:
    """Arithmetic and products of complex numbers."""
    mode = PortableMode()
    a, b = (torch.randn(256, 1024, dtype=torch.complex64) for _ in range(2))
    for name, job in (
        ("sum of 256x1024 and as many", lambda: a + b),
        ("product of 256x1024 and as many", lambda: a * b),
        ("quotient of 256x1024 and as many", lambda: a / b),
        ("magnitude of 256x1024", a.abs),
        ("256x1024 by 1024x256", lambda: a @ b.mT),
    ):
        yield Case(name, job, job, mode=mode)


def adam(*, fused: bool) -> torch.optim.Optimizer:
    """An optimizer with one matrix, which has a gradient."""
    weight = torch.nn.Parameter(torch.randn(1024, 1024))
    weight.grad = torch.randn(1024, 1024)
    return torch.optim.Adam([weight], fused=fused)


def naive_products() -> Iterator[Case]:
    """The same order as a plain triple loop, compiled with the system's compiler: what blocking is for."""
    naive = compile_naive()
    if naive is None:
        return
    size = 512
    a, b, c = matrix(size, size), matrix(size, size), torch.empty(size, size)

    def loop() -> None:
        naive(*(ctypes.c_void_p(t.data_ptr()) for t in (a, b, c)), *(ctypes.c_long(size),) * 3)

    loop()
    assert c.equal(gemm(a, b)), "the loop and the kernel differ"
    yield Case(f"{size}x{size} by {size}x{size}, plain loop", lambda: torch.mm(a, b), loop, 2 * size**3)


def compile_naive() -> Callable[..., object] | None:
    """The loop as a function, None without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "naive.c", Path(folder) / "naive.so"
        source.write_text(NAIVE)
        command = [
            "cc",
            "-O3",
            "-march=native",
            "-ffp-contract=off",
            "-shared",
            "-fPIC",
            "-o",
            library,
            source,
            "-lm",
        ]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no plain loop: {error}")
            return None
        return ctypes.CDLL(str(library)).naive  # type: ignore[no-any-return]


FAMILIES: dict[str, tuple[str, Callable[[], Iterable[Case]]]] = {
    "gemm": ("matrix products, target 1.1", large_products),
    "gemv": ("a matrix by a vector or a few, target 1.3", vectors),
    "small": ("small products", small_products),
    "elementwise": ("GELU and Adam, target 1.2", elementwise),
    "functions": ("elementary functions, no target", functions),
    "decompositions": ("eigh and svd, no target", decompositions),
    "transforms": ("Fourier transforms of float32, target 3", transforms),
    "complex": ("complex numbers, no target", complex_numbers),
    "naive": ("a plain loop in the same order", naive_products),
}
"""Tables by name. A family of kernels adds its own: a title, and a function that gives its cases."""


def best_times(case: Case, rounds: int) -> tuple[float, float]:
    """Shortest times of plain torch and of portable mode, in turns, within some time."""
    jobs = ((case.plain, nullcontext()), (case.ours, case.mode))
    best = [float("inf"), float("inf")]
    stop = time.perf_counter() + SECONDS_EACH
    for done in range(rounds * 100):
        for i, (job, mode) in enumerate(jobs):
            with mode:
                start = time.perf_counter()
                job()
                best[i] = min(best[i], time.perf_counter() - start)
        if done >= rounds and time.perf_counter() > stop:
            break
    return best[0], best[1]


def bench(name: str, threads: int, rounds: int) -> None:
    """Prints the table of a family."""
    title, cases = FAMILIES[name]
    torch.set_num_threads(threads)
    print(f"\n{title}: {threads} thread{'s'[: threads > 1]}, load {os.getloadavg()[0]:.1f}")
    print(f"{'':38}{'torch us':>12}{'ours us':>12}{'ratio':>8}{'GFLOP/s':>10}")
    for case in cases():
        plain, ours = best_times(case, rounds)
        speed = f"{case.flops / ours / 1e9:10.0f}" if case.flops else ""
        print(f"{case.name:38}{plain * 1e6:12.1f}{ours * 1e6:12.1f}{ours / plain:8.2f}{speed}", flush=True)


def print_errors() -> None:
    """Mean error against float64 over mean value: torch's products and ours, normal inputs."""
    print(f"\nerrors of products, 64 x K by K x 64\n{'K':>10}{'torch':>12}{'ours':>12}{'ratio':>8}")
    for k in (64, 512, 4096, 32768):
        torch.manual_seed(1)
        a, b = matrix(64, k), matrix(k, 64)
        exact = a.double() @ b.double()
        plain, ours = (
            float((found.double() - exact).abs().mean() / exact.abs().mean()) for found in (a @ b, gemm(a, b))
        )
        print(f"{k:10}{plain:12.2e}{ours:12.2e}{ours / plain:8.2f}")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=[*FAMILIES, "errors"], metavar="FAMILY")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=int, default=8, metavar="N")
    options = parser.parse_args()
    kernels = load()
    assert kernels is not None, "no C library: python setup.py build_ext --inplace"
    print(f"torch {torch.__version__}, kernels for {kernels.isa}, {os.cpu_count()} cores")
    for name in options.only or FAMILIES:
        if name != "errors":
            for threads in options.threads:
                bench(name, threads, options.rounds)
    if options.only is None or "errors" in options.only:
        print_errors()


if __name__ == "__main__":
    main()
