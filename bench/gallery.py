"""`samebits verify` on public programs as they are: does it crash, is it right, what does it cost?

    python bench/gallery.py                # all of bench/gallery.json; fetches each repository with git
    python bench/gallery.py ode pyro       # names or repositories that contain a word
    python bench/gallery.py --sources DIR  # take repositories from DIR/OWNER+NAME instead
    python bench/gallery.py --json FILE    # also write what was found

No program is kept here: `gallery.json` has the repository, the commit, the folder and the command of each,
and the packages that it needs beside torch. Every program is verified twice, each time in a fresh checkout.
The column `plain` is the median time of two runs under bare Python, `ratio` the time of an identical verdict
over it (only of programs that are not cut short by `--steps`). `plain output` says whether these two runs
printed the same.

A row needs a look where the two verdicts differ, where there is none, or where plain runs print the same and
the verdict is different: it may be a false alarm, or a difference that is not printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("gallery.json")
BIN = Path(sys.executable).parent
TITLES = ("program", "verdicts", "cause", "line", "plain output", "plain", "ratio")
WIDTHS = (22, 22, 22, 28, 13, 7, 6)


@dataclass(frozen=True)
class Program:
    """One public program.

    Args:
        name: what it is called here.
        repository: `OWNER/NAME`.
        commit: the version.
        folder: where it runs, below the checkout.
        command: the script or `-m module` with its arguments; `$NAME` first is a console script.
        prepare: commands that run before, such as one that makes the data.
        steps: where it is cut short; None runs it to its end.
        packages: what it needs beside torch and its own repository.
    """

    name: str
    repository: str
    commit: str
    folder: str
    command: str
    prepare: tuple[str, ...]
    steps: int | None
    packages: tuple[str, ...]

    def words(self) -> list[str]:
        """The command, a console script as the path of its file."""
        words = shlex.split(self.command)
        return [str(BIN / words[0][1:]), *words[1:]] if words[0].startswith("$") else words


@dataclass(frozen=True)
class Row:
    """What came of one program."""

    name: str
    verdicts: tuple[str, ...]
    cause: str = ""
    line: str = ""
    plain_seconds: float | None = None
    plain_output: str = ""
    seconds: tuple[float, ...] = ()
    reason: str = ""
    reports: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def ratio(self) -> float | None:
        """Time of an identical verdict over that of a plain run."""
        if self.plain_seconds is None or set(self.verdicts) != {"identical"}:
            return None
        return statistics.median(self.seconds) / self.plain_seconds


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="only programs with one in their name")
    parser.add_argument("--sources", type=Path, metavar="DIR", help="repositories that are here already")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one verify (default: 600)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found, after each program")
    parser.add_argument("--verify", default="", metavar="WORDS", help="options of verify, such as --quick")
    return parser.parse_args()


def read_programs(words: list[str]) -> list[Program]:
    """The programs that the command line asks for."""
    rows = json.loads(LIST.read_text())
    programs = [
        Program(**{**row, "prepare": tuple(row["prepare"]), "packages": tuple(row["packages"])})
        for row in rows
    ]
    return [p for p in programs if not words or any(word in f"{p.name} {p.repository}" for word in words)]


def check_out(program: Program, sources: Path | None, place: Path) -> Path:
    """Lay a fresh copy of the program's version into a folder, ready to run."""
    place.mkdir()
    if sources is None:
        git = place.with_name(f"{place.name}.git")
        url = f"https://github.com/{program.repository}"
        subprocess.run(["git", "init", "-q", "--bare", git], check=True)
        subprocess.run(["git", "-C", git, "fetch", "-q", "--depth", "1", url, program.commit], check=True)
    else:
        repo = sources / program.repository.replace("/", "+") / "repo"
        git = repo / ".git" if (repo / ".git").exists() else repo
    index = {**os.environ, "GIT_DIR": str(git), "GIT_INDEX_FILE": f"{place}.index"}
    subprocess.run(["git", "read-tree", program.commit], env=index, check=True)
    # A copy that lacks large files still has the program; that it needs one shows when it runs.
    subprocess.run(
        ["git", "checkout-index", "-a", "-q", f"--prefix={place}/"],
        env=index, check=False, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    folder = place / program.folder
    for command in program.prepare:
        words = [sys.executable if word == "python" else word for word in shlex.split(command)]
        subprocess.run(words, cwd=folder, env=environment(place), check=True, stdout=subprocess.DEVNULL)
    return folder


def environment(place: Path) -> dict[str, str]:
    """The user's own, with the checkout on the path as its README has it, and no windows."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    return {**kept, "PYTHONPATH": str(place), "MPLBACKEND": "Agg", "SDL_VIDEODRIVER": "dummy"}


def run_plainly(program: Program, sources: Path | None) -> tuple[float | None, str]:
    """Median seconds of two plain runs, and whether they printed the same."""
    if program.steps is not None:
        return None, ""
    seconds, outputs = [], []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch) / "checkout"
            folder = check_out(program, sources, place)
            started = time.monotonic()
            done = subprocess.run(
                [sys.executable, *program.words()],
                cwd=folder, env=environment(place), capture_output=True, check=False,
            )  # fmt: skip
            seconds.append(time.monotonic() - started)
            outputs.append((done.returncode, done.stdout))
    return statistics.median(seconds), "same" if outputs[0] == outputs[1] else "other"


def verify(program: Program, arguments: argparse.Namespace) -> tuple[dict[str, Any], float]:
    """The report of one verify in a fresh checkout, and how long it took."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "checkout"
        folder = check_out(program, arguments.sources, place)
        steps = [] if program.steps is None else ["--steps", str(program.steps)]
        words = [
            BIN / "samebits",
            "verify",
            "--json",
            *shlex.split(arguments.verify),
            *steps,
            *program.words(),
        ]
        started = time.monotonic()
        try:
            done = subprocess.run(
                words, cwd=folder, env=environment(place), capture_output=True, text=True, check=False,
                timeout=arguments.timeout,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {
                "verdict": "timeout",
                "reason": f"{arguments.timeout:.0f} s",
                "findings": [],
            }, arguments.timeout
        seconds = time.monotonic() - started
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        report = {"verdict": f"status {done.returncode}", "reason": "", "findings": []}
    return {**report, "stderr": done.stderr[-4000:], "status": done.returncode}, seconds


def judge(program: Program, arguments: argparse.Namespace) -> Row:
    """Two verifies, and two plain runs."""
    plain, output = run_plainly(program, arguments.sources)
    reports, seconds = zip(*(verify(program, arguments) for _ in range(2)), strict=True)
    first = next((r["findings"][0] for r in reports if r["findings"]), None)
    site = first["site"] if first else None
    return Row(
        program.name,
        tuple(report["verdict"] for report in reports),
        first["cause"] if first else "",
        f"{os.path.basename(site['file'])}:{site['line']}" if site else "",
        plain,
        output,
        seconds,
        next((report["reason"] or "" for report in reports), ""),
        reports,
    )


def shown(row: Row) -> str:
    """One line of the table."""
    plain = "" if row.plain_seconds is None else f"{row.plain_seconds:.1f} s"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    verdicts = row.verdicts[0] if len(set(row.verdicts)) == 1 else " / ".join(row.verdicts)
    return aligned((row.name, verdicts, row.cause, row.line, row.plain_output, plain, ratio))


def aligned(cells: tuple[str, ...]) -> str:
    """Cells under their titles."""
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def main() -> None:
    """Judge them one after the other."""
    arguments = parse_arguments()
    programs = read_programs(arguments.words)
    if shutil.which("git") is None:
        raise SystemExit("gallery: needs git")
    print(aligned(TITLES))
    rows: list[Row] = []
    for program in programs:
        rows.append(judge(program, arguments))
        print(shown(rows[-1]), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    ratios = [row.ratio for row in rows if row.ratio is not None]
    agreed = sum(len(set(row.verdicts)) == 1 for row in rows)
    print(f"\n{len(rows)} programs, {agreed} judged alike twice", end="")
    print(f", identical at {statistics.median(ratios):.2f} plain runs in the median" if ratios else "")


if __name__ == "__main__":
    main()
