"""Kill trainings by SIGKILL at random moments, also while they write a checkpoint, and have them go on.

    python bench/kills.py [--kills N] [--seed N]

For each script: one run without interruption, then runs that are killed again and again until one gets to its
end. A run fails when it ends with another digest than the uninterrupted one, or prints a loss that that one
did not print. After every kill each checkpoint in the folder is read as a whole: a torn one is a failure,
and so is one that differs in a byte from the uninterrupted run's checkpoint of that step. Half of the kills
come at a random moment, the others right after a checkpoint began to be written. Processes are forked from
one that has imported the libraries already. Status 1 when anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import os
import random
import runpy
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = {
    "digits": ("resumable_digits.py", "--save-every", "1", "--epochs", "2"),
    "digits, in background, workers": (
        *("resumable_digits.py", "--save-every", "2", "--epochs", "2"),
        *("--asynchronous", "--workers", "2"),
    ),
    "char-GPT": ("resumable_char_gpt.py", "--save-every", "2", "--steps", "16", "--layers", "2"),
}
LONGEST_WAIT = 600.0


@dataclass
class Tally:
    """What was seen of one script."""

    kills: int = 0
    while_writing: int = 0
    resumed: int = 0
    finished: int = 0
    checked: int = 0
    torn: int = 0
    leftovers: int = 0
    failures: list[str] = field(default_factory=list)


class Run:
    """One process that trains.

    Args:
        command: the name of the script and its arguments.
        folder: for its checkpoints.
        output: the file for what it prints.
    """

    def __init__(self, command: tuple[str, ...], folder: str, output: str) -> None:
        script, *arguments = command
        self.output = output
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()  # its workers end with it
                descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(descriptor, 1)
                os.dup2(os.open(f"{output}.errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
                sys.stdout.reconfigure(line_buffering=True)  # a kill loses no line
                sys.argv = [str(EXAMPLES / script), folder, *arguments]
                sys.path[0] = str(EXAMPLES)
                runpy.run_path(sys.argv[0], run_name="__main__")
                status = 0
            finally:
                sys.stdout.flush()
                os._exit(status)

    def ended(self) -> bool:
        """Whether it has come to its end by itself."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid and status:
            raise RuntimeError("a training failed:\n" + Path(f"{self.output}.errors").read_text())
        return bool(pid)

    def kill(self) -> None:
        """Kill it and its workers, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for its end."""
        while not self.ended():
            time.sleep(0.01)

    def lines(self) -> list[str]:
        """What it has printed."""
        return Path(self.output).read_text().splitlines()


def temporaries(folder: str) -> list[str]:
    """Checkpoints that are being written, or were when their process was killed."""
    with contextlib.suppress(FileNotFoundError):
        return [name for name in os.listdir(folder) if name.endswith(".tmp")]
    return []


def wait_for_kill(run: Run, folder: str, rng: random.Random, duration: float) -> bool:
    """Wait until a moment to kill the run; False when it has ended before.

    Every second time, about, that is when it writes.
    """
    writing = rng.random() < 0.5
    start, until = time.perf_counter(), rng.uniform(0, duration)
    while time.perf_counter() < start + until:
        if run.ended():
            return False
        time.sleep(0.002)
    if writing:
        before = set(temporaries(folder))
        while not set(temporaries(folder)) - before:
            if run.ended():
                return False
            if time.perf_counter() > start + LONGEST_WAIT:
                raise RuntimeError("nothing is written")
        time.sleep(rng.choice((0, 0, 0, 0.001, 0.005)))
    return True


def check_folder(folder: str, whole: str, tally: Tally) -> None:
    """Read every checkpoint as a whole, and compare it with that of the uninterrupted run."""
    from samebits import SamebitsError
    from samebits.checkpoint.interface import read

    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.endswith(".safetensors"):
            try:
                tally.checked += 1
                read(os.path.join(folder, name))
                if not filecmp.cmp(os.path.join(folder, name), os.path.join(whole, name), shallow=False):
                    tally.failures.append(f"{name} is not that of the uninterrupted run")
            except SamebitsError as error:
                tally.torn += 1
                tally.failures.append(str(error))


def check_output(lines: list[str], expected: list[str], tally: Tally, *, complete: bool) -> None:
    """Compare what a run printed with what the uninterrupted one did."""
    resumed = [line for line in lines if line.startswith("resumed")]
    rest = [line for line in lines if not line.startswith("resumed")]
    tally.resumed += bool(resumed)
    known = set(expected)
    tally.failures += [
        f"printed {line!r}, the uninterrupted run did not" for line in rest if line not in known
    ]
    if complete:
        tally.finished += 1
        if not lines or lines[-1] != expected[-1]:
            tally.failures.append(f"ended with {lines[-1:]}, the uninterrupted run with {expected[-1]!r}")


def torture(command: tuple[str, ...], kills: int, rng: random.Random) -> Tally:
    """Kill one script that often."""
    tally = Tally()
    top = tempfile.mkdtemp()
    try:
        start = time.perf_counter()
        whole = os.path.join(top, "whole")
        Run((*command, "--keep-last", "100000"), whole, os.path.join(top, "output")).wait()
        duration = time.perf_counter() - start
        expected = Path(top, "output").read_text().splitlines()
        number = 0
        while tally.kills < kills or os.path.exists(os.path.join(top, f"{number}")):
            folder = os.path.join(top, f"{number}")
            before = set(temporaries(folder))
            run = Run(command, folder, os.path.join(top, "output"))
            if tally.kills < kills and wait_for_kill(run, folder, rng, duration * 2 / 3):
                run.kill()
                tally.kills += 1
                tally.while_writing += bool(set(temporaries(folder)) - before)
                check_folder(folder, whole, tally)
                check_output(complete_lines(run), expected, tally, complete=False)
                os.makedirs(folder, exist_ok=True)
                continue
            if tally.kills >= kills:
                run.wait()
            check_output(run.lines(), expected, tally, complete=True)
            check_folder(folder, whole, tally)
            tally.leftovers += len(temporaries(folder))
            shutil.rmtree(folder)
            number += 1
    finally:
        shutil.rmtree(top)
    return tally


def complete_lines(run: Run) -> list[str]:
    """What a killed run printed, without a line that was cut."""
    text = Path(run.output).read_text()
    return text[: text.rfind("\n") + 1].splitlines()


def prepare() -> None:
    """Import what the scripts import; start no thread of torch, which a fork would not have."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import sklearn.datasets  # noqa: F401
    import torch

    import samebits.checkpoint.folder
    import samebits.data.loader  # noqa: F401

    torch.set_num_threads(1)


def main() -> int:
    """Kill all scripts, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="of all scripts together")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    arguments = parser.parse_args()
    prepare()
    rng = random.Random(arguments.seed)
    failures = []
    heads = "kills  while writing  resumed  finished  checked  torn  leftovers  failures"
    print(f"{'script':30} {heads}")
    for index, (name, command) in enumerate(SCRIPTS.items()):
        share = arguments.kills // len(SCRIPTS) + (index < arguments.kills % len(SCRIPTS))
        found = torture(command, share, rng)
        failures += [f"{name}: {failure}" for failure in found.failures]
        print(
            f"{name:30} {found.kills:5d} {found.while_writing:14d} {found.resumed:8d} "
            f"{found.finished:9d} {found.checked:8d} {found.torn:5d} {found.leftovers:10d} "
            f"{len(found.failures):9d}",
            flush=True,
        )
    print(*failures, sep="\n", end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
