"""How long portable mode takes to begin, in fresh processes after `import torch`: the least and the median.

    python bench/portable_start.py [--rounds N]

`begin`: entering it. `first`: the first operation that Python computes, which imports the handlers. Both are
beside the same process without portable mode, whose first operation is subtracted. torch is imported with
the garbage collector frozen: a pass over its objects takes a tenth of a second, and may be due at any time.

`run`: processor time of the whole of `samebits run --portable` of a script with that operation, beside the
same without `--portable`. Little of it is done by several threads, and other load disturbs it less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from fresh import compile_package, output_of

SCRIPT = "import torch\ntorch.ones(3).sinc().cumsum(0)\n"
PROGRAM = """
import gc, time, torch
gc.freeze()
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


def seconds(*, portable: bool) -> tuple[float, float, float]:
    """What one process measured."""
    program = PROGRAM.replace("PORTABLE", str(portable), 1)
    begin, first = map(float, output_of([sys.executable, "-c", program]).split())
    return begin, first, run_seconds(portable=portable)


def run_seconds(*, portable: bool) -> float:
    """Processor time of the command, with control and a record of the steps."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "script.py")
        script.write_text(SCRIPT, encoding="utf-8")
        options = ["--portable"] if portable else []
        command = [sys.executable, "-m", "samebits", "run", "--seed", "3", *options]
        before = os.times()
        output_of([*command, "--record", str(Path(place, "run.sbr")), str(script)])
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    rounds = range(parser.parse_args().rounds)
    compile_package()
    seconds(portable=True)  # what else is compiled and read at a first start
    pairs = [(seconds(portable=True), seconds(portable=False)) for _ in rounds]
    for name, at in (("begin", 0), ("first", 1), ("run", 2)):
        times = [1000 * (ours[at] - plain[at]) for ours, plain in pairs]
        print(f"{name:8}{min(times):8.1f} ms{statistics.median(times):8.1f} ms")


if __name__ == "__main__":
    main()
