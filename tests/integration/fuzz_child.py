"""Reads mutated records, logs or checkpoints, in a process with a limit of memory.

`fuzz_child.py KIND FIRST COUNT FOLDER` prints a line of JSON for each case that breaks a limit, with the name
of the limit: `traceback` (it ended in anything but a result or a `SamebitsError`), `seconds` (of processor
time), `raw` (a control character reached a terminal), `shown` (too much was) or `memory` (more was asked for
than there is). At last a line with the counts and the greatest figures.
"""

from __future__ import annotations

import faulthandler
import io
import json
import random
import re
import resource
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzz_mutations import CheckpointMutator, LogMutator, RecordMutator, make_checkpoint, make_records

from samebits.checkpoint import load
from samebits.cli.terminal import write
from samebits.errors import SamebitsError
from samebits.records.creation import fold
from samebits.records.log import is_written, log_of
from samebits.records.reader import RecordReader
from samebits.report import json as json_report
from samebits.report import record as record_report
from samebits.report import text as text_report
from samebits.report.style import Style
from samebits.verification import verify_records

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 16
MOST_SECONDS = 2.0
MOST_SHOWN = 50_000_000
ADDRESS_SPACE = 450 << 20  # beyond what the imports take
ROOM_OF_ONE_MB = 16  # that reading one damaged file may take
HANG_S = 60  # by the clock, however busy the machine is; then the process ends with a traceback
MOST_FAILURES = 20
MOST_EVENTS = 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STYLE = Style(colour=True, width=100)
Wrong = tuple[str, str]
"""The limit that was broken, and how; the limit is empty when none was."""


class Terminal(io.StringIO):
    """What a user would see."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def read_record(path: Path, other: Path, number: int, terminal: Terminal) -> None:
    """All that the command line does with a record of a stranger."""
    with RecordReader(path) as reader:
        summary = record_report.summarize(str(path), 1, reader.info, reader.events())
        write(record_report.render_text(summary, _STYLE), terminal)
        write(record_report.render_json(summary), terminal)
        events = [event for event, _ in zip(reader.events(), range(MOST_EVENTS), strict=False)]
        for event in events:
            write(record_report.event_json(event), terminal)
            reader.captures(event.seq)
        for line in record_report.render_events(events, _STYLE):
            write(line, terminal)
        reader.n_steps()
    pair = (path, other) if number % 2 else (other, path)
    result = verify_records(*map(str, pair))
    write(text_report.render(result, _STYLE, str(path.parent), verbose=number % 3 == 0), terminal)
    write(json_report.render(result.comparison), terminal)


def read_log(path: Path, other: Path, number: int, terminal: Terminal) -> None:
    """All that is done with a record whose writer may still be writing its log."""
    is_written(log_of(path))  # as `samebits clean` asks
    read_record(path, other, number, terminal)
    fold(path)


def read_checkpoint(path: Path, number: int, terminal: Terminal) -> None:
    """Load it with its generators, or without."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(path, strict=False, rng=number % 4 == 0)
    for warning in caught:
        terminal.write(f"{warning.message}\n")


def one_case(kind: str, number: int, folder: Path, mutator: Any) -> tuple[Wrong, float]:
    """What went wrong, and the processor time of reading."""
    rng = random.Random(f"{SEED} {kind} {number}")
    path, terminal = folder / "mutated", Terminal()
    other = mutator.write(rng, path)
    begun = time.process_time()
    wrong: Wrong = ("", "")
    refusal = ""
    try:
        if kind == "checkpoints":
            read_checkpoint(path, number, terminal)
        else:
            (read_log if kind == "logs" else read_record)(path, other, number, terminal)
    except SamebitsError as error:
        terminal.write(f"{error}\n")
        refusal = _whole_trace(error) if _wanted_memory(error) else ""
    except Exception:  # noqa: BLE001 - that is what is looked for
        wrong = ("traceback", traceback.format_exc()[-2500:])
    seconds = time.process_time() - begun
    if refusal and not _is_refused_by_sqlite(path):
        wrong = ("memory", refusal)
    return wrong if wrong[0] else _broken_limit(seconds, terminal.getvalue()), seconds


def _wanted_memory(error: BaseException) -> bool:
    """Whether an error stands for one that says that there is no memory."""
    under = error.__cause__ or error.__context__
    return isinstance(error, MemoryError) or (under is not None and _wanted_memory(under))


def _is_refused_by_sqlite(path: Path) -> bool:
    """Whether SQLite says so of a damaged file however much memory there is, and has not asked for any."""
    limited, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    before = peak_mb()
    try:
        refused = any(_wants_memory(read, path) for read in (_read_events, RecordReader.n_steps))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (limited, hard))
    return refused and peak_mb() - before < ROOM_OF_ONE_MB


def _read_events(reader: RecordReader) -> None:
    for _ in reader.events():
        pass


def _wants_memory(read: Callable[[RecordReader], object], path: Path) -> bool:
    try:
        with RecordReader(path) as reader:
            read(reader)
    except SamebitsError as error:
        return _wanted_memory(error)
    return False


def _whole_trace(error: BaseException) -> str:
    """Where it was raised, and where what it stands for was."""
    under = error.__cause__ or error.__context__
    parts = traceback.format_exception(error) + (traceback.format_exception(under) if under else [])
    return "".join(parts)[-5000:]


def _broken_limit(seconds: float, output: str) -> Wrong:
    if seconds > MOST_SECONDS:
        return "seconds", f"it took {seconds:.1f} s"
    shown = _COLOUR.sub("", output).replace("\n", "")
    if not shown.isprintable():
        return "raw", f"control characters: {[c for c in shown if not c.isprintable()][:5]!r}"
    return ("shown", f"{len(shown)} characters were shown") if len(shown) > MOST_SHOWN else ("", "")


def keep_case(folder: Path, number: int) -> Path:
    """Copy the files of a case, which hold times and places and could not be made again."""
    kept = folder / f"case-{number}"
    kept.mkdir()
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            shutil.copy2(path, kept)
    return kept


def limit_memory() -> None:
    """What is mapped now, and so much more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def peak_mb() -> float:
    """The most memory that this process has held.

    Not by `getrusage`: where a process is started by `vfork`, it begins there with what its parent held.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


def make_mutator(kind: str, folder: Path) -> RecordMutator | LogMutator | CheckpointMutator:
    """The mutator of a kind of file."""
    if kind == "checkpoints":
        return CheckpointMutator(make_checkpoint(folder))
    records = make_records(folder)
    return LogMutator(records) if kind == "logs" else RecordMutator(records)


def main() -> int:
    """Run the cases."""
    kind, first, count, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    mutator = make_mutator(kind, folder)
    one_case(kind, -1, folder, mutator)  # what is imported late
    imports_mb = peak_mb()
    limit_memory()
    failures, slowest = 0, 0.0
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        (limit, found), seconds = one_case(kind, number, folder, mutator)
        slowest = max(slowest, seconds)
        if limit:
            failures += 1
            kept = keep_case(folder, number)
            found = f"{found}\nits files are kept in {kept}"
            print(json.dumps({"case": number, "limit": limit, "found": found}), flush=True)
        if failures > MOST_FAILURES:
            break
    faulthandler.cancel_dump_traceback_later()
    figures = {"cases": count, "slowest_s": slowest, "imports_mb": imports_mb, "peak_mb": peak_mb()}
    print(json.dumps(figures), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
