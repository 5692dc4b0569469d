"""`samebits verify` on every script of the planted corpus: does it see, place and name what is there?

    python bench/planted/run.py                      # all: 45 minutes on 2 cores
    python bench/planted/run.py wall-clock           # names or causes that contain that
    python bench/planted/run.py --clean --stress     # clean scripts, circumstances perturbed
    python bench/planted/run.py --json FILE          # also write what was found, after each script
    python bench/planted/run.py --cuda --jobs 8      # the scripts that need a GPU
    python bench/planted/run.py --remedies           # apply each remedy called tried, and verify that
    python bench/planted/run.py --json FILE --resume # run only what FILE lacks, or what has changed since

The column `line`: `hit` is the line where chance enters, `entry` the line where its value becomes part of a
tensor, `near` is at most two lines away or a later finding, `miss` is elsewhere. The column `cause`:
`unknown` is honest, `wrong` is not. The column `remedy`: `confirmed` by pairs of runs with it, `open` if it
could not be tried with success. A race that two runs do not show is verified once more, with five. A planted
script that verify finds identical is run plainly as well, and does not count if six runs print the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from corpus import CLEAN, CUDA_SCRIPTS, SCRIPTS, Script, read_corpus
from remedies import outcome
from scores import Score, figures, score

WIDTHS = (30, 23, 10, 6, 22, 9, 7)
TITLES = ("script", "expected", "verdict", "line", "cause", "remedy", "seconds")
PLAIN_RUNS = 6
RACES = ("race", "nondeterministic-kernel", "worker-order")
RACE_RUNS = ["--runs", "5"]
SPARE_S = 5.0


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="only where cause/name contains one")
    parser.add_argument("--cuda", action="store_true", help="the corpus for a GPU")
    parser.add_argument("--budget", help="seconds for explaining a script (default: that of verify)")
    parser.add_argument("--clean", action="store_true", help="only clean scripts")
    parser.add_argument("--planted", action="store_true", help="only planted scripts")
    parser.add_argument(
        "--times", action="store_true", help="run each script plainly too, for the ratio of times"
    )
    parser.add_argument("--stress", action="store_true", help="call `verify --stress` on all")
    parser.add_argument(
        "--remedies", action="store_true", help="apply the lines of each remedy called tried, and verify that"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="scripts at a time (default: 2; with 1 verify may use both cores)"
    )
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one script (default: 900)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write scores and findings")
    parser.add_argument("--resume", action="store_true", help="keep the verdicts of --json FILE")
    arguments = parser.parse_args()
    if arguments.resume and not arguments.json:
        parser.error("--resume needs --json FILE")
    return arguments


def chosen(arguments: argparse.Namespace) -> list[Script]:
    """The scripts that the command line asks for."""
    scripts = read_corpus(CUDA_SCRIPTS if arguments.cuda else SCRIPTS)
    if arguments.clean != arguments.planted:
        scripts = [script for script in scripts if script.is_clean == arguments.clean]
    if arguments.words:
        scripts = [s for s in scripts if any(word in f"{s.cause}/{s.name}" for word in arguments.words)]
    return scripts


def verify(script: Script, extra: list[str], timeout: float) -> dict[str, Any]:
    """What `samebits verify --json` prints; runs in an empty folder of its own."""
    words = [*script.options, *(word for word in extra if word not in script.options)]
    # The seed of the hash is a circumstance that some scripts are about; a pinned one would hide it.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "samebits", "verify", "--json", *words]
        command += ["--keep", os.path.join(folder, "records"), str(script.path)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                stdin=subprocess.DEVNULL,  # a pipe could be had by one run at a time only
            )
        except subprocess.TimeoutExpired:
            return {"verdict": "not_judged", "reason": f"no verdict in {timeout:g} s", "findings": []}
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"verdict": "not_judged", "reason": done.stderr.strip()[-2000:], "findings": []}
    if found["verdict"] == "not_judged":
        found["stderr"] = done.stderr[-2000:]
    return found


def varies(script: Script, timeout: float) -> bool:
    """Whether plain runs of a script, without samebits, print different things."""
    printed = set()
    for _ in range(PLAIN_RUNS):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(script.path)]
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=timeout, check=False)
        printed.add(done.stdout)
        if len(printed) > 1:
            return True
    return False


def plain_seconds(script: Script, timeout: float) -> float:
    """How long one plain run takes."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(script.path)]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=timeout, check=False)
    return time.perf_counter() - start


def row(cells: tuple[str, ...]) -> str:
    """One line of the table."""
    return " ".join(cell[:width].ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def show(result: Score, found: dict[str, Any]) -> None:
    """Print a script's line of the table, and why where it is not as expected."""
    cause = f"wrong: {result.found_cause}" if result.cause == "wrong" else result.cause
    cells = (result.name, result.expected, result.verdict, result.line, cause, result.remedy)
    cells += (f"{result.seconds:.0f}",)
    print(row(cells), flush=True)
    alarm = result.expected == CLEAN and result.verdict == "different"
    if alarm or result.verdict == "not_judged":
        print(f"    {found.get('reason')}", flush=True)
    if result.applied not in {"-", "identical"}:
        print(f"    with the lines of its remedy, called tried: {result.applied}", flush=True)


class Results:
    """What was found so far, by script; kept in a file if one is named."""

    def __init__(self, path: Path | None, *, resume: bool, times: bool) -> None:
        self.times = times
        self.plain: dict[str, float] = {}
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self.lock = Lock()
        if path and resume and path.exists():
            self.rows = {row["name"]: row for row in json.loads(path.read_text(encoding="utf-8"))}

    def known(self, script: Script) -> dict[str, Any] | None:
        """The row of that script, unless it was not judged or has changed since."""
        row = self.rows.get(script.name)
        judged = row is not None and row["verdict"] != "not_judged"
        return row if judged and row["fingerprint"] == script.fingerprint else None

    def add(self, script: Script, result: Score, found: dict[str, Any]) -> None:
        """Keep a result, and write the file."""
        with self.lock:
            self.rows[script.name] = {**asdict(result), "fingerprint": script.fingerprint, "found": found}
            if self.path:
                text = json.dumps(list(self.rows.values()), indent=1)
                self.path.write_text(text + "\n", encoding="utf-8")


def may_hide(script: Script) -> bool:
    """Whether two runs may agree by chance, and the script does not ask for more by itself."""
    return bool(set(RACES) & set(script.causes)) and "--runs" not in script.options


def try_remedy(script: Script, extra: list[str], found: dict[str, Any], timeout: float) -> None:
    """Note what came of the lines that the report shows, unless it is known."""
    runs = RACE_RUNS if may_hide(script) else []
    if found["verdict"] == "different" and "applied" not in found:
        options = [*script.options, *(word for word in extra if word not in script.options), *runs]
        found["applied"] = outcome(script.path, found, options, timeout)


def judge(script: Script, arguments: argparse.Namespace, results: Results) -> Score:
    """Run one script unless its result is known, and print its line of the table."""
    timeout = arguments.timeout
    extra = ["--stress"] if arguments.stress else []
    extra += ["--budget", arguments.budget] if arguments.budget else []
    known = results.known(script)
    if results.times and known is None:
        results.plain[script.name] = plain_seconds(script, timeout)
    start = time.perf_counter()
    found = known["found"] if known else verify(script, extra, timeout)
    if not known and found["verdict"] == "identical" and may_hide(script):
        found = verify(script, [*extra, *RACE_RUNS], timeout)
    seconds = known["seconds"] if known else time.perf_counter() - start
    if found["verdict"] == "identical" and not script.is_clean and "varies" not in found:
        found["varies"] = varies(script, timeout)
    if arguments.remedies:
        try_remedy(script, extra, found, timeout)
    result = score(script, found, seconds=seconds)
    show(result, found)
    results.add(script, result, found)
    return result


def main() -> None:
    """Print the table as scripts end, then the figures."""
    arguments = parse_arguments()
    scripts = chosen(arguments)
    results = Results(arguments.json, resume=arguments.resume, times=arguments.times)
    print(row(TITLES), flush=True)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        scores = list(pool.map(lambda s: judge(s, arguments, results), scripts))
    print()
    print("\n".join(figures(scores)))
    ratios = sorted(
        (score.seconds - SPARE_S) / results.plain[score.name]
        for score in scores
        if score.name in results.plain and score.verdict == "different"
    )
    if ratios:
        words = f"median {statistics.median(ratios):.1f}, from {ratios[0]:.1f} to {ratios[-1]:.1f}"
        print(f"{'time, less 5 s':24} {words} plain runs")


if __name__ == "__main__":
    main()
