"""How long portable mode takes to begin, in fresh processes after `import torch`: the least and the median.

    python bench/portable_start.py [--rounds N]

`begin`: entering it. `first`: the first operation that Python computes, which imports the handlers. Both are
beside the same process without portable mode, whose first operation is subtracted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

PROGRAM = """
import time, torch
portable = PORTABLE
start = time.perf_counter()
if portable:
    from samebits.portable.activation import PortableActivation
    activation = PortableActivation()
    activation.start()
begun = time.perf_counter()
torch.ones(3).sinc().cumsum(0)
done = time.perf_counter()
print(begun - start, done - begun)
if portable:
    activation.stop()
"""


def seconds(*, portable: bool) -> tuple[float, float]:
    """What one process measured."""
    program = PROGRAM.replace("PORTABLE", str(portable), 1)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    begin, first = map(float, done.stdout.split())
    return begin, first


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    rounds = range(parser.parse_args().rounds)
    pairs = [(seconds(portable=True), seconds(portable=False)) for _ in rounds]
    for name, at in (("begin", 0), ("first", 1)):
        times = [1000 * (ours[at] - plain[at]) for ours, plain in pairs]
        print(f"{name:8}{min(times):8.1f} ms{statistics.median(times):8.1f} ms")


if __name__ == "__main__":
    main()
