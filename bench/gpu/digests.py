"""The digest's kernels: values beside the CPU's, bandwidth beside a copy, time of many small tensors.

    python bench/gpu/digests.py --out DIR [--max-gb N]

Rows: `check` (mismatches of so many tensors); `bandwidth` (GB/s read, and as a share of a device copy of
the same size, its read and written bytes counted); `small` (ms for so many tensors: tables made anew and
the result waited for; tables reused; time on the device alone; time that the host is busy with a launch;
and the torch operations that `samebits.digest` uses today).
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import torch
from device_digest import VARIANTS, Plan, digest_on_device, kernels
from outcome import Part, run_part
from timing import device_ms, host_ms

from samebits.digest import digest_many
from samebits.digest._definition import DTYPES
from samebits.digest._torch_backend import TorchBackend

if TYPE_CHECKING:
    from cuda_module import Kernel

BLOCK = 1024
UNIT = 64 * BLOCK


def of_all_dtypes(seed: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return tensors of random bits of every dtype that torch can make, of odd sizes: on CPU, on device."""
    torch.manual_seed(seed)
    made = []
    for i, name in enumerate(DTYPES):
        dtype = getattr(torch, name, None)
        if not isinstance(dtype, torch.dtype):
            continue
        try:
            data = torch.randint(0, 256, (dtype.itemsize * (977 + 131 * i),), dtype=torch.uint8)
            data = data & 1 if name == "bool" else data
            made.append((data.view(dtype), data.cuda().view(dtype)))
        except RuntimeError:  # a dtype without such views
            continue
    return made


def of_all_sizes() -> list[torch.Tensor]:
    """Return CPU tensors of bytes with lengths around words, stripes, blocks and units."""
    torch.manual_seed(1)
    around = [0, 1, 8, 128, BLOCK, 16 * BLOCK, UNIT, 3 * UNIT, 133 * UNIT]
    sizes = sorted({max(0, size + more) for size in around for more in (-9, -8, -1, 0, 1, 8, 15)})
    return [torch.randint(0, 256, (size,), dtype=torch.uint8) for size in sizes]


def at_offset(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """Return a copy of bytes on the device that begins `offset` bytes after a multiple of 512."""
    memory = torch.empty(tensor.numel() + offset, dtype=torch.uint8, device="cuda")
    view = memory[offset:]
    view.copy_(tensor)
    return view


def count_wrong(found: bytes, expected: bytes) -> int:
    """Return how many digests differ."""
    starts = range(0, len(expected), 16)
    return sum(found[i : i + 16] != expected[i : i + 16] for i in starts) + (len(found) != len(expected))


def check(part: Part, functions: dict[str, Kernel]) -> None:
    """Compare values for all dtypes, lengths, starts, shapes."""
    typed, bytes_of = of_all_dtypes(0), of_all_sizes()
    shaped = [
        torch.randn(3, 5, 7),
        torch.tensor(2.5),
        torch.empty(0, 4),
        torch.randn(64, 33).T,
        torch.randn(4, 6, 8)[:, ::2],
    ]
    for variant in VARIANTS:
        _check(part, functions, variant, "dtypes", ([t for t, _ in typed], [t for _, t in typed]))
        _check(part, functions, variant, "shapes", (shaped, [t.cuda() for t in shaped]))
        for offset in (0, 1, 4, 7, 8, 12):
            moved = [at_offset(t, offset) for t in bytes_of]
            _check(part, functions, variant, f"start at {offset}", (bytes_of, moved))


def _check(
    part: Part,
    functions: dict[str, Kernel],
    variant: str,
    what: str,
    tensors: tuple[list[torch.Tensor], list[torch.Tensor]],
) -> None:
    on_cpu, on_device = tensors
    expected = digest_many(on_cpu)
    wrong = count_wrong(digest_on_device(functions, on_device, variant), expected)
    part.row(kind="check", what=what, variant=variant, tensors=len(on_cpu), mismatches=wrong)


def check_large(part: Part, functions: dict[str, Kernel], max_gb: float) -> None:
    """Compare values of large tensors, of at most 3 GB; the last one has an odd number of bytes."""
    for n_bytes in (1 << 28, int(max_gb * 1e9) | 1):
        torch.manual_seed(2)
        made = torch.randint(-(1 << 62), 1 << 62, (n_bytes // 8 + 1,), dtype=torch.int64, device="cuda")
        on_device = made.view(torch.uint8)[:n_bytes]
        on_cpu = on_device.cpu()
        for variant in VARIANTS:
            _check(part, functions, variant, f"{n_bytes / 1e9:.2f} GB", ([on_cpu], [on_device]))
        twice = {digest_on_device(functions, [on_device], VARIANTS[0]) for _ in range(5)}
        part.row(kind="check", what="5 times", variant=VARIANTS[0], tensors=1, mismatches=len(twice) - 1)


def bandwidth(part: Part, functions: dict[str, Kernel], max_gb: float) -> None:
    """Measure what is read in a second, beside a copy."""
    for n_bytes in (1 << 22, 1 << 26, 1 << 28, int(max_gb * 1e9) // 1024 * 1024):
        source = torch.randint(0, 1 << 60, (n_bytes // 8,), dtype=torch.int64, device="cuda")
        target = torch.empty_like(source)
        copy = 2 * n_bytes / device_ms(lambda s=source, t=target: t.copy_(s)) / 1e6
        read = n_bytes / device_ms(lambda s=source: s.sum()) / 1e6
        size = f"{n_bytes / 1e6:.0f} MB"
        part.row(kind="bandwidth", what=size, variant="copy", gb_s=copy, of_copy=1.0)
        part.row(kind="bandwidth", what=size, variant="torch.sum", gb_s=read, of_copy=read / copy)
        for variant in VARIANTS:
            for blocks in (2, 4, 8, 16):
                plan = Plan(functions, [source], variant, blocks)
                rate = n_bytes / device_ms(plan.launch) / 1e6
                name = f"{variant} {blocks} per SM"
                part.row(kind="bandwidth", what=size, variant=name, gb_s=rate, of_copy=rate / copy)


def small(part: Part, functions: dict[str, Kernel]) -> None:
    """Measure many small tensors: 1 to 64 KB, most of them not whole blocks."""
    for count in (1, 200, 1000):
        tensors = [torch.randn(256 + 61 * (i % 256), device="cuda") for i in range(count)]
        expected = digest_many([t.cpu() for t in tensors])
        for variant in ("digest_1x1", "digest_2x1"):
            plan = Plan(functions, tensors, variant)
            plan.launch()
            wrong = count_wrong(plan.result(), expected)
            part.row(
                kind="small",
                what=f"{count} tensors",
                variant=variant,
                mismatches=wrong,
                anew_ms=host_ms(lambda v=variant, t=tensors: digest_on_device(functions, t, v)),
                reused_ms=host_ms(lambda p=plan: (p.launch(), p.result())),
                device_ms=device_ms(plan.launch, repeats=5),
                launch_ms=host_launch_ms(plan),
            )
        wrong = count_wrong(TorchBackend().digest_tensors(tensors), expected)
        anew = host_ms(lambda t=tensors: digest_many(t), rounds=5, warm_up=1)
        row = {"kind": "small", "what": f"{count} tensors", "variant": "torch operations"}
        part.row(**row, mismatches=wrong, anew_ms=anew)


def host_launch_ms(plan: Plan) -> float:
    """Return how long the host is busy with one launch, in milliseconds."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        plan.launch()
    taken = time.perf_counter() - start
    torch.cuda.synchronize()
    return taken / 20 * 1e3


def measure(part: Part, arguments: argparse.Namespace) -> None:
    """Do all of it; what fails in one leaves the others."""
    functions = kernels()
    gigabytes = arguments.max_gb
    part.attempt("check", lambda: check(part, functions))
    part.attempt("small", lambda: small(part, functions))
    part.attempt("bandwidth", lambda: bandwidth(part, functions, gigabytes))
    part.attempt("check of large tensors", lambda: check_large(part, functions, gigabytes))


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-gb", type=float, default=3.0, help="size of the largest tensor")
    run_part("digest", parser, measure)


if __name__ == "__main__":
    main()
