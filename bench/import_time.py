"""How long `import samebits` takes beyond a bare interpreter, beside `import torch`.

    python bench/import_time.py

Fresh interpreters in turn; the fastest of each is compared, because other load only ever adds time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

TARGET_MS = 40.0
STATEMENTS = {"bare": "pass", "samebits": "import samebits", "command line": "import samebits.cli.main"}
TORCH = {"torch": "import torch"}


def start_ms(statement: str) -> float:
    """Milliseconds that a fresh interpreter takes for that statement, start and end included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return (time.perf_counter() - start) * 1000


def measure(statements: dict[str, str], rounds: int) -> dict[str, float]:
    """Fastest start of each statement; one uncounted round writes the byte code and warms the disk cache."""
    times = [{name: start_ms(code) for name, code in statements.items()} for _ in range(rounds + 1)]
    return {name: min(taken[name] for taken in times[1:]) for name in statements}


def main() -> None:
    """Measure, and print target and figure side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    fastest = {**measure(STATEMENTS, rounds), **measure(TORCH, 3)}
    bare = fastest["bare"]
    print(f"{'import of':14} {'ms':>8} {'beyond bare':>12}   target")
    for name, taken in fastest.items():
        aim = (
            f"{TARGET_MS:.0f} ms  {'met' if taken - bare <= TARGET_MS else 'MISSED'}"
            if name == "samebits"
            else ""
        )
        print(f"{name:14} {taken:8.1f} {taken - bare:12.1f}   {aim}")


if __name__ == "__main__":
    main()
