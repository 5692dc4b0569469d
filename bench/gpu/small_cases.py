"""One small case of each kernel, for compute-sanitizer, which makes everything slow.

    compute-sanitizer --tool racecheck python bench/gpu/small_cases.py --kernel gemm

Ends with status 1 if a value differs from the CPU's.
"""

from __future__ import annotations

import argparse

import torch
from convolutions import CHECKED, ours
from device_digest import VARIANTS, digest_on_device, kernels
from device_gemm import Gemm, Totals, Variant
from scalar_math import compare, sample

from samebits.digest import digest_many
from samebits.portable.kernels.contractions import gemm
from samebits.portable.kernels.elementwise import unary

GEMMS = (
    Variant(128, 128, 16, 3, Totals.SHARED, 2),
    Variant(128, 128, 8, 4, Totals.REGISTERS, 1),
    Variant(64, 64, 16, 3, Totals.APART, 4),
)


def digest_case() -> int:
    """Return how many variants give wrong digests of a few tensors."""
    tensors = [torch.arange(size, dtype=torch.uint8) for size in (5, 1024, 70_001)]
    starts = [tensor.cuda() for tensor in tensors] + [tensor.cuda()[3:] for tensor in tensors]
    expected = digest_many([*tensors, *(tensor[3:] for tensor in tensors)])
    functions = kernels()
    return sum(digest_on_device(functions, starts, variant) != expected for variant in VARIANTS)


def gemm_case() -> int:
    """Return how many variants give wrong products."""
    torch.manual_seed(0)
    a, b = torch.randn(130, 300), torch.randn(300, 140)
    expected, one, other = gemm(a, b), a.cuda(), b.cuda()
    return sum(not torch.equal(Gemm(variant).multiply(one, other).cpu(), expected) for variant in GEMMS)


def scalar_case() -> int:
    """Return how many functions give other bits for a few values."""
    names = ("exp", "log", "tanh", "sin", "lgamma")
    x = sample(torch.float32, 4096, 0)
    return sum(compare(unary(name, x.cuda()), unary(name, x)).mismatches > 0 for name in names)


def conv_case() -> int:
    """Return how many parts of convolutions have other bits."""
    return sum(
        not torch.equal(job(), ours(case, case.tensors("cuda"))[what]().cpu())
        for case in CHECKED
        for what, job in ours(case, case.tensors("cpu")).items()
    )


CASES = {"digest": digest_case, "gemm": gemm_case, "conv": conv_case, "scalar": scalar_case}


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", choices=CASES, required=True)
    wrong = CASES[parser.parse_args().kernel]()
    torch.cuda.synchronize()
    print(f"{wrong} wrong")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
