"""Twin runs of every example under `samebits run --seed`: the share that is identical.

Each case is run twice with one seed and once with another: with and without the flag that makes the example
irreproducible in plain Python, with 0, 1, 2 and 4 workers, forked and spawned.

    python bench/twins.py             # all: about 20 minutes on 2 cores
    python bench/twins.py cifar10     # those whose name contains that
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from samebits.comparison import compare_records

EXAMPLES = Path(__file__).parents[1] / "examples"
SHORT = {
    "line_fit": ["--steps", "100"],
    "cifar10": ["--images", "200", "--epochs", "2"],
    "digits": ["--epochs", "2"],
    "char_gpt": ["--steps", "10"],
}
IRREPRODUCIBLE = {
    "line_fit": [],  # without its own --seed it is
    "cifar10": ["--augment"],
    "digits": ["--split-by-set"],
    "char_gpt": ["--warmup-seconds", "1"],
}
LOADERS = ("cifar10", "digits")
WORKERS = [[], *(["--workers", str(n), "--start-method", how] for n in (1, 2, 4) for how in ("fork", "spawn"))]


@dataclass(frozen=True)
class Case:
    """One way to run an example."""

    example: str
    arguments: tuple[str, ...]
    clock: bool = False

    @property
    def name(self) -> str:
        """For the table."""
        return " ".join([self.example, *self.arguments])


def cases() -> list[Case]:
    """All cases."""
    found = []
    for example, short in SHORT.items():
        flags = [[], IRREPRODUCIBLE[example]] if IRREPRODUCIBLE[example] else [[]]
        workers = WORKERS if example in LOADERS else [[]]
        if example == "cifar10":
            workers = [["--workers", "0"], *workers[1:]]
        for flag, how in itertools.product(flags, workers):
            found.append(Case(example, (*short, *flag, *how), clock="--warmup-seconds" in flag))
    return found


def run(case: Case, seed: int, record: Path) -> str:
    """Run a case; its error, empty if none."""
    script = [str(EXAMPLES / f"{case.example}.py"), *case.arguments]
    options = ["--seed", str(seed), "--reseed", "--record", str(record), "--force"]
    command = [sys.executable, "-m", "samebits", "run", *options, *script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]


def judge(case: Case, folder: Path) -> tuple[str, str]:
    """Verdict over two runs with one seed, and over two runs with two seeds."""
    first, second, other = (folder / f"{name}.sbr" for name in ("first", "second", "other"))
    for seed, record in ((3, first), (3, second), (4, other)):
        error = run(case, seed, record)
        if error:
            return error, ""
    return compare_records(first, second).verdict, compare_records(first, other).verdict


def main() -> None:
    """Print a table, then the shares."""
    wanted = [case for case in cases() if all(word in case.name for word in sys.argv[1:])]
    print(f"{'':72} {'one seed':>10} {'two seeds':>10}")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for case in wanted:
            same, other = judge(case, Path(folder))
            results.append((case, same, other))
            print(f"{case.name:72} {same:>10} {other:>10}", flush=True)
    timed = [case for case, _, _ in results if case.clock]
    same = sum(verdict == "identical" for case, verdict, _ in results if not case.clock)
    apart = sum(verdict == "different" for case, _, verdict in results)
    print(f"\nidentical with one seed: {same} of {len(results) - len(timed)}; ", end="")
    print(f"different with two: {apart} of {len(results)}")
    if timed:
        print(f"not counted: {len(timed)} that let the clock decide how far they go (no seed controls a clock)")


if __name__ == "__main__":
    main()
