"""All kernels for a GPU in one run: do they give the CPU's bits, and how fast are they?

    python bench/gpu/kernels.py --out DIR [--seconds N] [--parts scalar,digest,gemm,conv]
                                [--exhaustive exp,log] [--sanitize]

Each part is a program of its own with a time limit, so that none takes another with it. Its rows are in
DIR/PART.json, what it printed in DIR/PART.txt. The summary comes last. `--sanitize` runs a small case of
each kernel under compute-sanitizer as well, which takes a minute or two.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcome import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "scalar": "scalar_math.py",
    "digest": "digests.py",
    "gemm": "products.py",
    "conv": "convolutions.py",
}
LIMITS = {"scalar": 45, "digest": 45, "gemm": 60, "conv": 45}
SANITIZER_SECONDS = 120
EXHAUSTIVE_SECONDS = 15
SHOWN_VARIANTS = 3
Rows = list[dict[str, Any]]


def environment() -> dict[str, str]:
    """Return this environment with the package of this checkout first."""
    paths = [str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}


def run(command: Sequence[str], log: Path, seconds: float, more: Mapping[str, str] | None = None) -> str:
    """Run a program; its output goes to a file.

    Returns:
        its status, or that its time was over.
    """
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as output:
        try:
            done = subprocess.run(
                command,
                env=environment() | dict(more or {}),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=max(1.0, seconds),
                check=False,
            )
            status = f"status {done.returncode}"
        except subprocess.TimeoutExpired:
            status = "time over"
        except OSError as error:
            status = str(error)
    return f"{status}, {time.perf_counter() - start:.0f} s"


def read(folder: Path, part: str) -> dict[str, Any]:
    """Return what a part wrote, as far as it came."""
    try:
        return json.loads((folder / f"{part}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"rows": [], "failures": [], "notes": {}}


def scalar_summary(rows: Rows) -> Rows:
    """Return one line for each dtype, and the functions that differ."""
    lines = []
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        of = [row for row in rows if row["dtype"] == dtype]
        differing = [f"{row['function']}:{row['mismatches']}" for row in of if row["mismatches"]]
        lines.append(
            {
                "dtype": dtype,
                "functions": len(of),
                "values": sum(row["values"] for row in of),
                "mismatches": sum(row["mismatches"] for row in of),
                "nan_bits": sum(row["nan_bits"] for row in of),
                "differing": " ".join(differing) or "none",
            }
        )
    return lines


def digest_summary(rows: Rows) -> Rows:
    """Return the checks together, the best bandwidths at each size, and the times of small tensors."""
    checks = [row for row in rows if row["kind"] == "check"]
    wrong = sum(row["mismatches"] for row in checks)
    tensors = sum(row["tensors"] for row in checks)
    lines: Rows = [{"kind": "check", "what": f"{tensors} digests", "variant": "all", "mismatches": wrong}]
    rates = [row for row in rows if row["kind"] == "bandwidth"]
    for what in dict.fromkeys(row["what"] for row in rates):
        of = [row for row in rates if row["what"] == what]
        kernels = sorted(
            (row for row in of if row["variant"].startswith("digest")), key=lambda row: -row["gb_s"]
        )
        lines += [row for row in of if not row["variant"].startswith("digest")] + kernels[:SHOWN_VARIANTS]
    return lines + [row for row in rows if row["kind"] == "small"]


def gemm_summary(rows: Rows) -> Rows:
    """Return the checks together, and the fastest kernels at each size."""
    checks = [row for row in rows if row["kind"] == "check"]
    wrong = sum(row["other_bits"] for row in checks)
    lines: Rows = [{"what": f"{len(checks)} products", "variant": "checks with the CPU", "other_bits": wrong}]
    speeds = [row for row in rows if row["kind"] == "speed"]
    for what in dict.fromkeys(row["what"] for row in speeds):
        of = [row for row in speeds if row["what"] == what]
        kernels = sorted(
            (row for row in of if not row["variant"].startswith("cuBLAS")), key=lambda row: row["ms"]
        )
        lines += of[:1] + kernels[:SHOWN_VARIANTS]
    return [{key: value for key, value in row.items() if key != "kind"} for row in lines]


def conv_summary(rows: Rows) -> Rows:
    """Return the checks together, and all speeds."""
    checks = [row for row in rows if row["kind"] == "check"]
    wrong = sum(row["other_bits"] for row in checks)
    lines: Rows = [{"what": f"{len(checks)} checks with the CPU", "part": "all", "other_bits": wrong}]
    return lines + [
        {key: value for key, value in row.items() if key != "kind"} for row in rows if row["kind"] == "speed"
    ]


SUMMARIES = {"scalar": scalar_summary, "digest": digest_summary, "gemm": gemm_summary, "conv": conv_summary}


def sanitize(folder: Path) -> Rows:
    """Run a small case of each kernel under compute-sanitizer, all side by side."""
    cases = [
        (kernel, tool)
        for kernel in ("digest", "gemm", "conv", "scalar")
        for tool in ("memcheck", "racecheck")
    ]
    with ThreadPoolExecutor(len(cases)) as pool:
        return list(pool.map(lambda case: _sanitize_one(folder, *case), cases))


def _sanitize_one(folder: Path, kernel: str, tool: str) -> dict[str, Any]:
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    log = folder / f"{tool}-{kernel}.txt"
    case = [sys.executable, str(HERE / "small_cases.py"), "--kernel", kernel]
    command = [program, "--tool", tool, "--error-exitcode", "9", *case]
    status = run(command, log, SANITIZER_SECONDS, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = next((line.strip("= ") for line in reversed(lines) if "SUMMARY" in line), "")
    return {"tool": tool, "kernel": kernel, "status": status, "said": said}


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--seconds", type=float, default=145, help="for all parts together")
    parser.add_argument("--parts", default=",".join(PROGRAMS), help="which, separated by commas")
    parser.add_argument(
        "--exhaustive", default="", help="passed on to scalar_math.py, with 15 s for each function"
    )
    parser.add_argument("--sanitize", action="store_true", help="compute-sanitizer as well")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + arguments.seconds
    statuses = {}
    for part in arguments.parts.split(","):
        command = [sys.executable, str(HERE / PROGRAMS[part]), "--out", str(arguments.out)]
        limit = min(LIMITS[part], end - time.monotonic())
        if part == "scalar" and arguments.exhaustive:
            more = EXHAUSTIVE_SECONDS * len(arguments.exhaustive.split(","))
            command += ["--exhaustive", arguments.exhaustive]
            limit, end = limit + more, end + more
        statuses[part] = run(command, arguments.out / f"{part}.txt", limit)
    sanitized = sanitize(arguments.out) if arguments.sanitize else []
    summary(arguments.out, statuses, sanitized)


def summary(folder: Path, statuses: Mapping[str, str], sanitized: Rows) -> None:
    """Print what was found, and write it to DIR/summary.txt."""
    texts = []
    for part, status in statuses.items():
        content = read(folder, part)
        texts.append(f"\n== {part}: {status} {content['notes']}")
        try:
            texts.append(table(SUMMARIES[part](content["rows"])))
        except (KeyError, TypeError) as error:
            texts.append(f"no summary: {error!r}")
        texts += [f"failed: {failure['what']}: {failure['error'][:300]}" for failure in content["failures"]]
    if sanitized:
        texts.append("\n== compute-sanitizer\n" + table(sanitized))
    text = "\n".join(texts)
    (folder / "summary.txt").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
