"""Matrix products in the order of the portable numerics: bits beside the CPU's, speed beside cuBLAS.

    python bench/gpu/products.py --out DIR [--quick]

Rows: `kernel` (registers, bytes of local memory that registers spill to, dynamic shared memory); `check`
(outputs with other bits than portable mode on the CPU); `speed` (median ms, TFLOP/s, speed as a share of
that of cuBLAS in float32 with TF32 off, outputs with other bits than those of the first variant).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import torch
from device_gemm import Gemm, Totals, Variant, build_all
from outcome import Part, run_part
from timing import device_ms

from samebits.portable.kernels.contractions import gemm

if TYPE_CHECKING:
    from collections.abc import Callable

Layout = tuple[bool, bool]
ROWS = (True, False)
"""The layout of two row-major matrices: a is contiguous along k, b is not."""
LAYOUTS = {"nn": ROWS, "tn": (False, False), "nt": (True, True), "tt": (False, True)}
LARGE = (
    Variant(128, 128, 16, 3, Totals.SHARED, 2),
    Variant(128, 128, 16, 3, Totals.SHARED, 2, group=8),
    Variant(128, 128, 16, 3, Totals.SHARED, 2, lines=16, group=8),
    Variant(128, 128, 8, 3, Totals.SHARED, 2, lines=16),
    Variant(128, 128, 8, 4, Totals.SHARED, 2, lines=16, group=8),
    Variant(128, 256, 8, 3, Totals.SHARED, 1, lines=16, group=4),
    Variant(128, 128, 16, 2, Totals.SHARED, 2),
    Variant(128, 128, 8, 3, Totals.SHARED, 2),
    Variant(128, 128, 8, 4, Totals.SHARED, 2),
    Variant(128, 128, 16, 3, Totals.REGISTERS, 1),
    Variant(128, 128, 8, 4, Totals.REGISTERS, 1),
    Variant(128, 128, 32, 3, Totals.REGISTERS, 1),
    Variant(128, 64, 16, 3, Totals.SHARED, 3),
    Variant(128, 64, 8, 3, Totals.SHARED, 4),
    Variant(128, 64, 16, 3, Totals.REGISTERS, 2),
    Variant(256, 128, 16, 3, Totals.SHARED, 1),
    Variant(64, 64, 16, 3, Totals.SHARED, 5),
)
SPLIT = (
    Variant(128, 128, 16, 3, Totals.APART, 1),
    Variant(128, 128, 8, 3, Totals.APART, 2),
    Variant(64, 64, 16, 3, Totals.APART, 4),
)
SHAPES = (
    (128, 128, 128),
    (1, 1, 1),
    (77, 131, 300),
    (129, 255, 129),
    (200, 200, 1000),
    (64, 64, 100),
    (1, 4096, 4096),
    (8, 1000, 5000),
    (1000, 8, 5000),
    (33, 65, 12345),
    (512, 768, 3072),
    (1024, 1024, 1024),
)
SQUARES = (1024, 2048, 4096, 8192)
SKINNY = (
    (16, 4096, 4096),
    (64, 4096, 4096),
    (4096, 64, 4096),
    (1024, 1024, 32768),
    (768, 3072, 16384),
    (1, 8192, 8192),
)

Built = dict[tuple[Variant, Layout], Gemm]


def operands(m: int, n: int, k: int, layout: Layout) -> tuple[torch.Tensor, torch.Tensor]:
    """Return CPU matrices with numbers of many sizes."""
    generator = torch.Generator().manual_seed(m * 7 + n * 3 + k)
    a = torch.randn(m, k, generator=generator)
    a *= torch.exp2(torch.randint(-20, 20, (m, k), generator=generator))
    b = torch.randn(k, n, generator=generator)
    return arranged(a, b, layout)


def arranged(a: torch.Tensor, b: torch.Tensor, layout: Layout) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same matrices, contiguous as the layout says."""
    return (a if layout[0] else a.T.contiguous().T), (b.T.contiguous().T if layout[1] else b)


def other_bits(one: torch.Tensor, other: torch.Tensor) -> int:
    """Return how many outputs have other bits."""
    return int((one.view(torch.int32) != other.to(one.device).view(torch.int32)).sum())


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the same strides."""
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")
    return copy.copy_(tensor)


def check(part: Part, built: Built) -> None:
    """Compare every kernel with the CPU for many shapes."""
    layouts = {key[1] for key in built}
    for m, n, k in SHAPES:
        for layout in layouts:
            a, b = operands(m, n, k, layout)
            expected = gemm(a, b)
            _check_shape(part, built, layout, (on_device(a), on_device(b), expected))


def _check_shape(
    part: Part, built: Built, layout: Layout, tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
) -> None:
    a, b, expected = tensors
    blocks = -(-a.shape[1] // 128)
    name = next(name for name, value in LAYOUTS.items() if value == layout)
    for (variant, of), kernel in built.items():
        if of != layout:
            continue
        shares = (1, 3, blocks) if variant.totals == Totals.APART else (blocks,)
        wrong = sum(other_bits(kernel.multiply(a, b, each), expected) for each in sorted({*shares}))
        size = "x".join(map(str, (a.shape[0], b.shape[1], a.shape[1])))
        part.row(kind="check", what=f"{size} {name}", variant=variant.name, other_bits=wrong)


def check_unaligned(part: Part, built: Built) -> None:
    """Compare views whose rows begin at any number."""
    a, b = operands(300, 333, 700, ROWS)
    one, other = on_device(a)[1:299, 3:], on_device(b)[:697, 5:]
    expected = gemm(a[1:299, 3:], b[:697, 5:])
    for (variant, layout), kernel in built.items():
        if layout == ROWS:
            wrong = other_bits(kernel.multiply(one, other, 2), expected)
            part.row(kind="check", what="views", variant=variant.name, other_bits=wrong)


def check_large(part: Part, built: Built, size: int) -> None:
    """Compare one large square with the CPU, and that the same call gives the same bits 5 times."""
    a, b = operands(size, size, size, ROWS)
    expected = gemm(a, b)
    one, other = a.cuda(), b.cuda()
    kernel = built[LARGE[0], ROWS]
    wrong = [other_bits(kernel.multiply(one, other), expected) for _ in range(5)]
    part.row(kind="check", what=f"{size}x{size}x{size} 5 times", variant=LARGE[0].name, other_bits=sum(wrong))


def speed(part: Part, built: Built, size: tuple[int, int, int], layout: Layout = ROWS) -> None:
    """Measure kernels of a layout at a size, cuBLAS before and after."""
    m, n, k = size
    rounds = 7 if m * n * k > 1 << 36 else 15
    a, b = arranged(torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda"), layout)
    jobs: dict[str, Callable[[], torch.Tensor]] = {"cuBLAS": lambda: a @ b}
    jobs["as portable mode chooses"] = lambda: gemm(a, b)
    blocks = -(-k // 128)
    for (variant, of), kernel in built.items():
        if of != layout:
            continue
        if variant.totals != Totals.APART:
            jobs[variant.name] = lambda f=kernel: f.multiply(a, b)
        elif m * n * blocks <= 1 << 30:
            for each in _shares(variant, size):
                jobs[f"{variant.name} share {each}"] = lambda f=kernel, e=each: f.multiply(a, b, e)
    jobs["cuBLAS again"] = jobs["cuBLAS"]
    name = next(name for name, value in LAYOUTS.items() if value == layout)
    _measure_jobs(part, "x".join(map(str, size)) + f" {name}", jobs, (2e-9 * m * n * k, rounds))


def _shares(variant: Variant, size: tuple[int, int, int]) -> list[int]:
    """Return blocks of k for each share, such that each processor has about 1, 2 or 4 thread blocks."""
    m, n, k = size
    tiles = -(-m // variant.rows) * -(-n // variant.columns)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    blocks = -(-k // 128)
    return sorted({max(1, min(blocks, blocks * tiles // (processors * many))) for many in (1, 2, 4)})


def _measure_jobs(
    part: Part, what: str, jobs: dict[str, Callable[[], torch.Tensor]], work: tuple[float, int]
) -> None:
    gigaflop, rounds = work
    reference = next((job for name, job in jobs.items() if not name.startswith("cuBLAS")), jobs["cuBLAS"])()
    base = 0.0
    for name, job in jobs.items():
        milliseconds = device_ms(job, rounds)
        base = base or milliseconds
        wrong = "" if name.startswith("cuBLAS") else other_bits(job(), reference)
        part.row(
            kind="speed",
            what=what,
            variant=name,
            ms=milliseconds,
            tflops=gigaflop / milliseconds,
            of_cublas=base / milliseconds,
            other_bits=wrong,
        )


def measure(part: Part, arguments: argparse.Namespace) -> None:
    """Do all of it; what fails in one leaves the others."""
    torch.backends.cuda.matmul.allow_tf32 = False
    best = LARGE[0]
    wanted = [(variant, ROWS) for variant in (*LARGE, *SPLIT)]
    wanted += [(best, layout) for layout in LAYOUTS.values() if layout != ROWS]
    wanted += [(SPLIT[2], layout) for layout in LAYOUTS.values() if layout != ROWS]
    built, failed = build_all(wanted[:1] if arguments.quick else wanted)
    part.note(failed=failed)
    for (variant, layout), kernel in built.items():
        part.row(
            kind="kernel",
            what=next(name for name, value in LAYOUTS.items() if value == layout),
            variant=variant.name,
            registers=kernel.registers,
            spilled=kernel.spilled_bytes,
            shared=variant.shared_bytes(layout),
        )
    part.attempt("check", lambda: check(part, built))
    part.attempt("check of views", lambda: check_unaligned(part, built))
    if arguments.quick:
        return
    for size in SQUARES:
        part.attempt(f"speed {size}", lambda s=size: speed(part, built, (s, s, s)))
    for size in SKINNY:
        part.attempt(f"speed {size}", lambda s=size: speed(part, built, s))
    for name, layout in LAYOUTS.items():
        part.attempt(f"speed {name}", lambda y=layout: speed(part, built, (4096, 4096, 4096), y))
    part.attempt("check of a large square", lambda: check_large(part, built, 4096))


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one kernel, values only")
    run_part("gemm", parser, measure)


if __name__ == "__main__":
    main()
