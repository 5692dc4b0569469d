"""What an installed wheel does on the machine that runs this, without starting processes.

Its compiled parts are there, digests are those of torch, and trainings are recorded and compared.
"""

from __future__ import annotations

import platform
import sys
import tempfile
from pathlib import Path

import torch

import samebits
from samebits.digest import native
from samebits.digest._native_backend import open_backend
from samebits.digest._torch_backend import TorchBackend
from samebits.portable.backends import library
from samebits.verification import verify_records


def train(record: Path, rate: float) -> None:
    """Train a small network for three steps, recorded with every operation."""
    with samebits.record(record, level="op"):
        torch.manual_seed(0)
        model = torch.nn.Linear(8, 4)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(16, 8)).tanh().square().mean().backward()
            optimizer.step()


def digests_agree() -> bool:
    """Compare the compiled digests with those of torch's operations, for many dtypes and lengths."""
    compiled, plain = open_backend(), TorchBackend()
    if compiled is None:
        return False
    dtypes = (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool)
    tensors = [torch.arange(n).to(dtype) for dtype in dtypes for n in (0, 1, 7, 1000, 70_001)]
    return compiled.digest_tensors(tensors) == plain.digest_tensors(tensors)


def main() -> int:
    """Print what was tried, and return 0 if all of it worked."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{name}.sbr") for name in ("first", "same", "other")]
        for path, rate in zip(paths, (0.01, 0.01, 0.02), strict=True):
            train(path, rate)
        same, other = (verify_records(str(paths[0]), str(path)).comparison.verdict for path in paths[1:])
    outcomes = {
        "compiled digests": native.load() is not None,
        "compiled reader": native.load_module() is not None,
        "compiled kernels": library.load() is not None,
        "digests of torch's operations": digests_agree(),
        "equal trainings are identical": same == "identical",
        "other trainings are different": other == "different",
    }
    for name, worked in outcomes.items():
        print(f"{platform.machine()} {name}: {'yes' if worked else 'NO'}", file=sys.stderr)
    return 0 if all(outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
