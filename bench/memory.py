"""How much memory and disk recording takes: process memory with and without, bytes per tensor event.

    python bench/memory.py                       50 million parameters, 40 steps, about a minute
    python bench/memory.py --parameters 5e6 --steps 2000

Each run is a fresh process that trains the same model on a CPU; its figure is the peak of its resident
memory (`ru_maxrss`). The allowance at step level is 64 MB and 1 KB per step, whatever the model's size.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

ALLOWED_MB, ALLOWED_PER_STEP_KB, ALLOWED_BYTES_PER_TENSOR = 64.0, 1.0, 100.0
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
LAYERS = 8


def train(level: str, record: str, parameters: float, steps: int) -> None:
    """Train in this process, recorded unless the level is `plain`; print the peak of its memory in bytes."""
    import torch

    import samebits

    torch.manual_seed(0)
    width = int((parameters / LAYERS) ** 0.5)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(LAYERS)))
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(4, width)
    with nullcontext() if level == "plain" else samebits.record(record, level=level):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT))


def peak_mb(level: str, record: Path, parameters: float, steps: int) -> float:
    """Peak memory of a fresh process in MB (2**20 bytes)."""
    command = [sys.executable, __file__, "--train", level, "--record", str(record)]
    command += ["--parameters", str(parameters), "--steps", str(steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout) / 2**20


def bytes_per_tensor(record: Path) -> tuple[int, int]:
    """Size of a record and its number of tensor events."""
    from samebits.records.reader import RecordReader

    with RecordReader(record) as reader:
        return record.stat().st_size, sum(len(event.tensors) for event in reader.events())


def verdict(figure: float, allowed: float) -> str:
    """Whether the figure is allowed."""
    return f"{figure:10.1f} {allowed:10.1f}  {'met' if figure <= allowed else 'MISSED'}"


def report(level: str, parameters: float, steps: int, runs: int) -> None:
    """Measure one level, and print target and figure side by side."""
    with tempfile.TemporaryDirectory() as folder:
        records = [Path(folder) / f"{number}.sbr" for number in range(runs)]
        plain, recorded = [], []
        for record in records:
            plain.append(peak_mb("plain", record, parameters, steps))
            recorded.append(peak_mb(level, record, parameters, steps))
        size, tensors = bytes_per_tensor(records[0])
    added = min(recorded) - min(plain)
    model = f"{parameters / 1e6:.0f} M parameters, {steps} steps"
    print(f"{level} level: {model}, {min(plain):.0f} MB without recording")
    print(f"  {'':28} {'figure':>10} {'allowed':>10}")
    allowed = ALLOWED_MB + ALLOWED_PER_STEP_KB * steps / 1024
    print(f"  {'memory added, MB':28} " + (verdict(added, allowed) if level == "step" else f"{added:10.1f}"))
    print(f"  {'disk bytes per tensor event':28} {verdict(size / tensors, ALLOWED_BYTES_PER_TENSOR)}")
    print(f"  ({tensors} tensor events in {size} bytes)")


def main() -> None:
    """Measure both levels, or be one of the measured processes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parameters", type=float, default=50e6)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--runs", type=int, default=2, help="processes of each kind; the smallest counts")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--record", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        train(args.train, args.record, args.parameters, args.steps)
        return
    for level in ("step", "op"):
        report(level, args.parameters, args.steps, args.runs)


if __name__ == "__main__":
    main()
