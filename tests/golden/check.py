"""Every golden training under every setting that this machine has: prints a table, fails where bits differ.

python tests/golden/check.py             compare with tests/golden/portable.json
python tests/golden/check.py --quick     the best and the plainest setting only
python tests/golden/check.py --write     make that file anew, from the best kernels here
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "portable.json"
EXAMPLES = {
    "example_line_fit": ("line_fit.py", "--seed", "3"),
    "example_digits": ("digits.py", "--seed", "3", "--epochs", "1"),
    "example_cifar10": ("cifar10.py", "--seed", "3", "--images", "80"),
    "example_char_gpt": ("char_gpt.py", "--seed", "3", "--steps", "4", "--text", "text.txt"),
}
# The example's own text is that of Python's library, which differs between versions of Python.
TEXT = "\n".join(f"{n} squared is {n**2}, cubed it is {n**3}." for n in range(2000))


def settings(*, quick: bool) -> list[dict[str, str]]:
    """The environments that training must not notice."""
    kernels = available_kernels()
    if quick:
        return [_setting(kernels[0], "", 2), _setting("scalar", "default", 1)]
    # torch does not ask the processor: with a set that it lacks, the process ends by an illegal instruction.
    missing = {"avx512"} if "avx512" not in kernels and "avx2" in kernels else set()
    sets = [each for each in ("avx512", "avx2", "default") if each not in missing]
    crossed = itertools.product(kernels, sets, (1, 2))
    pins = [
        {**_setting(kernels[0], "", 2), "MKL_CBWR": "COMPATIBLE"},
        {**_setting(kernels[0], "", 1), "ONEDNN_MAX_CPU_ISA": "SSE41"},
        {**_setting(kernels[-1], "default", 2), "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    ]
    more_threads = [_setting(isa, "default", threads) for isa in kernels for threads in (3, 4)]
    return [_setting(*one) for one in crossed] + more_threads + pins


def _setting(kernels: str, aten: str, threads: int) -> dict[str, str]:
    found = {"SAMEBITS_PORTABLE_BACKEND": kernels, "OMP_NUM_THREADS": str(threads)}
    return {**found, "ATEN_CPU_CAPABILITY": aten} if aten else found


def available_kernels() -> list[str]:
    """The instruction sets that the kernels can use here, best first."""
    from samebits.portable.backends.library import find_library, open_library

    path = find_library()
    kernels = open_library(path) if path else None
    if kernels is None:
        return ["reference"]
    return [isa for isa in ("avx512", "avx2", "neon", "scalar") if kernels.select(isa)]


def digests_under(setting: dict[str, str]) -> dict[str, str]:
    """The digests of all golden trainings in a fresh process, and of the examples in processes of theirs."""
    environment = {**os.environ, **setting}
    printed = subprocess.run(
        [sys.executable, str(HERE / "compute.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if printed.returncode:
        raise SystemExit(f"{_words(setting)}: {printed.stderr.strip()[-600:]}")
    found: dict[str, str] = json.loads(printed.stdout)["digests"]
    return found | {name: _example(words, environment) for name, words in EXAMPLES.items()}


def _example(words: tuple[str, ...], environment: dict[str, str]) -> str:
    """The digest of the weights that an example, run by the command line, leaves."""
    import torch

    from samebits import digest

    script = str(HERE.parents[1] / "examples" / words[0])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text.txt").write_text(TEXT, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "samebits",
            "run",
            "--portable",
            script,
            *words[1:],
            "--save",
            "w.pt",
        ]
        run = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise SystemExit(f"{words[0]}: {run.stderr.strip()[-600:]}")
        return str(digest(torch.load(Path(folder) / "w.pt")))


def _words(setting: dict[str, str]) -> str:
    return " ".join(f"{name.removeprefix('SAMEBITS_PORTABLE_')}={value}" for name, value in setting.items())


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the best and the plainest setting only")
    parser.add_argument("--write", action="store_true", help="make the golden file anew")
    parser.add_argument("--jobs", type=int, default=2, help="settings at a time (default: 2)")
    return parser.parse_args()


def main() -> int:
    """Compare, and say what differs."""
    arguments = parse_arguments()
    if arguments.write:
        made = digests_under(_setting(available_kernels()[0], "", 2))
        GOLDEN.write_text(json.dumps({"numerics": 1, "digests": made}, indent=1) + "\n", encoding="utf-8")
        return 0
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))["digests"]
    wrong = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        tried = settings(quick=arguments.quick)
        for setting, found in zip(tried, pool.map(digests_under, tried), strict=True):
            other = [name for name, digest in expected.items() if found.get(name) != digest]
            wrong += len(other)
            print(
                f"{_words(setting):<100} {len(expected) - len(other):>3} of {len(expected)} same",
                *other,
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
