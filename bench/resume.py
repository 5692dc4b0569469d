"""What stays the same when the data are loaded otherwise, or a run is resumed: samebits beside its peers.

    python bench/resume.py                      # every tool that is installed; half an hour on 2 cores
    python bench/resume.py samebits grain       # these
    python bench/resume.py --points 3           # fewer moments of resuming, of samebits

One rig for all (`bench/resume_tools/rig.py`): 64 samples, global batches of 8, 2 epochs; each sample gives
its index and three draws. A cell says `same` or what is left of it, first of the order, then of the draws of
each sample: `same 16/128` is the same order, and 16 of 128 samples with the draws that they had. `set` is
the same samples in each global batch, in another order; `-` means that the tool refuses or fails. Rows of
resuming compare what is left of the run, and the final weights as `w` (same) or `W` (other ones).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

TOOLS = {
    "samebits": "samebits",
    "torch": "torch",
    "trainer": "transformers",
    "lightning": "lightning",
    "accelerate": "accelerate",
    "grain": "grain",
}
FOLDER = Path(__file__).parent / "resume_tools"
N_STEPS, N_PER_EPOCH = 16, 8
TIMEOUT = 300
PORT = 29_600


@dataclass(frozen=True)
class Setting:
    """How one run loads its data."""

    workers: int = 0
    prefetch: int = 2
    persistent: bool = False
    start: str = "fork"
    world: int = 1

    def words(self) -> list[str]:
        """Arguments of a tool."""
        words = [f"--workers={self.workers}", f"--prefetch={self.prefetch}", f"--start={self.start}"]
        return [*words, "--persistent"] if self.persistent else words


ONE, TWO, FOUR = Setting(workers=1), Setting(workers=2), Setting(workers=4)
# What is changed, from which run to which.
CHANGES = {
    "run again, 0 workers": (Setting(), Setting()),
    "run again, 2 workers": (TWO, TWO),
    "0 to 1 workers": (Setting(), ONE),
    "1 to 2 workers": (ONE, TWO),
    "2 to 4 workers": (TWO, FOUR),
    "prefetch 2 to 8": (TWO, replace(TWO, prefetch=8)),
    "persistent workers": (TWO, replace(TWO, persistent=True)),
    "fork to spawn": (TWO, replace(TWO, start="spawn")),
    "1 to 2 ranks": (Setting(), Setting(world=2)),
    "1 to 4 ranks": (Setting(), Setting(world=4)),
}
# Resumed: how the run was begun, and how it goes on.
RESUMED = {
    "resume, 0 workers": (Setting(), Setting()),
    "resume, 2 workers": (TWO, TWO),
    "resume, 2 to 0 workers": (TWO, Setting()),
    "resume, 0 to 4 workers": (Setting(), FOUR),
    "resume, 1 to 2 ranks": (Setting(), Setting(world=2)),
    "resume, 2 to 1 ranks": (Setting(world=2), Setting()),
}


@dataclass(frozen=True)
class Consumed:
    """What the training loop of one run got.

    Args:
        batches: rows (index and draws) of each global batch, in order.
        weights: digests of the final weights, of each rank.
    """

    batches: tuple[tuple[tuple[int, ...], ...], ...]
    weights: frozenset[str]


@dataclass
class Cell:
    """How much is the same, summed over the runs of one row."""

    order: str = "same"
    same: int = 0
    samples: int = 0
    weights: list[bool] = field(default_factory=list)

    def text(self) -> str:
        """As the table shows it."""
        draws = "same" if self.same == self.samples else f"{self.same}/{self.samples}"
        weights = "" if not self.weights else " w" if all(self.weights) else " W"
        return f"{self.order} {draws}{weights}"


class Runs:
    """Runs one tool, each setting once.

    Args:
        tool: its name.
        folder: for logs and checkpoints.
    """

    def __init__(self, tool: str, folder: Path) -> None:
        self._tool = tool
        self._folder = folder
        self._whole: dict[Setting, Consumed | None] = {}
        self._count = 0

    def whole(self, setting: Setting, *, again: bool = False) -> Consumed | None:
        """An uninterrupted run; None when the tool fails."""
        if again or setting not in self._whole:
            found = self._run(setting, self._new_folder(), [])
            if again:
                return found
            self._whole[setting] = found
        return self._whole[setting]

    def resumed(self, first: Setting, then: Setting, stop: int) -> Consumed | None:
        """What a run that was stopped after some steps consumes when it goes on."""
        state = self._new_folder()
        if self._run(first, state, [f"--stop={stop}"]) is None:
            return None
        return self._run(then, state, ["--resume"])

    def _new_folder(self) -> Path:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        return folder

    def _run(self, setting: Setting, state: Path, words: list[str]) -> Consumed | None:
        script = FOLDER / f"tool_{self._tool}.py"
        logs = [state / f"log-{rank}" for rank in range(setting.world)]
        common = [f"--state={state}", *setting.words(), *words]
        if setting.world == 1:
            commands = [[sys.executable, str(script), f"--log={logs[0]}", *common]]
            environments = [{}]
        else:
            commands = [[sys.executable, str(script), f"--log={log}", *common] for log in logs]
            environments = [self._rank(rank, setting.world) for rank in range(setting.world)]
        return _consumed(logs) if _run_together(commands, environments) else None

    def _rank(self, rank: int, world: int) -> dict[str, str]:
        port = PORT + 50 * list(TOOLS).index(self._tool) + self._count % 50
        return {
            **{name: str(rank) for name in ("RANK", "LOCAL_RANK")},
            **{name: str(world) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")},
            **dict.fromkeys(("NODE_RANK", "GROUP_RANK"), "0"),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }


def _run_together(commands: list[list[str]], environments: list[dict[str, str]]) -> bool:
    quiet = subprocess.DEVNULL
    common = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    running = [
        subprocess.Popen(command, env={**common, **more}, stdout=quiet, stderr=quiet, cwd=FOLDER)
        for command, more in zip(commands, environments, strict=True)
    ]
    try:
        return max(process.wait(timeout=TIMEOUT) for process in running) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        for process in running:
            process.kill()


def _consumed(logs: list[Path]) -> Consumed:
    ranks = [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]
    weights = frozenset(line["weights"] for rank in ranks for line in rank if "weights" in line)
    steps = [[line["rows"] for line in rank if "rows" in line] for rank in ranks]
    batches = [tuple(tuple(row) for part in parts for row in part) for parts in zip(*steps, strict=False)]
    return Consumed(tuple(batches), weights)


def compared(cell: Cell, a: Consumed, b: Consumed) -> None:
    """Add to a cell what of the first run is the same in the second; where they are shorter, in the rest."""
    order = "same" if _indices(a, sort=False) == _indices(b, sort=False) else "other"
    if order == "other" and _indices(a, sort=True) == _indices(b, sort=True):
        order = "set"
    rank = ("same", "set", "other")
    cell.order = max(cell.order, order, key=rank.index)
    ours, theirs = _draws(a), _draws(b)
    cell.samples += len(ours)
    cell.same += sum(theirs.get(key) == draws for key, draws in ours.items())


def _indices(run: Consumed, *, sort: bool) -> list[list[int]]:
    found = [[row[0] for row in batch] for batch in run.batches]
    return [sorted(batch) for batch in found] if sort else found


def _draws(run: Consumed) -> dict[tuple[int, int], tuple[int, ...]]:
    """By how often the sample came before, counted from the end: a resumed run lacks the beginning."""
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    seen: dict[int, int] = {}
    for row in [row for batch in run.batches for row in batch][::-1]:
        seen[row[0]] = seen.get(row[0], -1) + 1
        found[row[0], seen[row[0]]] = row[1:]
    return found


def changed(runs: Runs, before: Setting, after: Setting) -> str:
    """The cell of a row that changes how data are loaded."""
    a, b = runs.whole(before), runs.whole(after, again=before == after)
    if a is None or b is None:
        return "-"
    cell = Cell()
    compared(cell, a, b)
    return cell.text()


def went_on(runs: Runs, first: Setting, then: Setting, stops: list[int]) -> str:
    """The cell of a row that resumes."""
    cell = Cell()
    for stop in stops:
        whole, rest = runs.whole(first), runs.resumed(first, then, stop)
        if whole is None or rest is None:
            return "-"
        compared(cell, replace(whole, batches=whole.batches[stop:]), rest)
        if first.world == then.world == 1:
            cell.weights.append(whole.weights == rest.weights)
    return cell.text()


def column(tool: str, points: int) -> dict[str, str]:
    """All cells of one tool."""
    stops = random.Random(7).choices(range(1, N_STEPS), k=points)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(tool, Path(folder))
        for row, (before, after) in CHANGES.items():
            found[row] = changed(runs, before, after)
            print(f"{tool}: {row}: {found[row]}", file=sys.stderr, flush=True)
        for row, (first, then) in RESUMED.items():
            found[row] = went_on(runs, first, then, stops)
            print(f"{tool}: {row}: {found[row]}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tools", nargs="*", metavar="TOOL", help="by default all that are installed")
    parser.add_argument("--points", type=int, default=20, help="random moments of resuming, for samebits")
    parser.add_argument("--peer-points", type=int, default=3, help="the same for the others")
    parser.add_argument("--jobs", type=int, default=2, help="tools at a time")
    chosen = parser.parse_args()
    tools = [tool for tool in chosen.tools or TOOLS if importlib.util.find_spec(TOOLS[tool])]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        columns = dict(
            zip(
                tools,
                pool.map(
                    lambda tool: column(tool, chosen.points if tool == "samebits" else chosen.peer_points),
                    tools,
                ),
                strict=True,
            )
        )
    _print(columns)


def _print(columns: dict[str, dict[str, str]]) -> None:
    widths = {tool: max(len(tool), *map(len, cells.values())) for tool, cells in columns.items()}
    label = max(map(len, (*CHANGES, *RESUMED)))
    print(" ".join([" " * label, *(f"{tool:{widths[tool]}}" for tool in columns)]))
    for row in (*CHANGES, *RESUMED):
        print(" ".join([f"{row:{label}}", *(f"{columns[tool][row]:{widths[tool]}}" for tool in columns)]))


if __name__ == "__main__":
    main()
