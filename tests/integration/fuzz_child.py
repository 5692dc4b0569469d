"""Reads mutated records or checkpoints, in a process with a limit of memory.

`fuzz_child.py KIND FIRST COUNT FOLDER` prints a line of JSON for each case that ends in anything but a result
or a `SamebitsError`, takes more than two seconds of processor time, or sends a control character to a
terminal; and at last a line with the counts.
"""

from __future__ import annotations

import faulthandler
import io
import json
import random
import re
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path

from fuzz_mutations import CheckpointMutator, RecordMutator, make_checkpoint, make_records

from samebits.checkpoint import load
from samebits.cli.terminal import write
from samebits.errors import SamebitsError
from samebits.recording.store import RecordReader
from samebits.report import json as json_report
from samebits.report import record as record_report
from samebits.report import text as text_report
from samebits.report.style import Style
from samebits.verification import verify_records

SEED = 16
MOST_SECONDS = 2.0
MOST_MEMORY = 450 << 20  # beyond what the imports take
MOST_EVENTS = 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STYLE = Style(colour=True, width=100)


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


def read_checkpoint(path: Path, number: int, terminal: Terminal) -> None:
    """Load it with its generators, or without."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(path, strict=False, rng=number % 4 == 0)
    for warning in caught:
        terminal.write(f"{warning.message}\n")


def one_case(kind: str, number: int, folder: Path, mutator: object) -> str:
    """What went wrong; empty if nothing did."""
    rng = random.Random(f"{SEED} {kind} {number}")
    path, terminal = folder / "mutated", Terminal()
    begun = time.process_time()
    try:
        if kind == "records":
            other = mutator.write(rng, path)  # type: ignore[attr-defined]
            begun = time.process_time()
            read_record(path, other, number, terminal)
        else:
            path.write_bytes(mutator.mutated(rng))  # type: ignore[attr-defined]
            begun = time.process_time()
            read_checkpoint(path, number, terminal)
    except SamebitsError as error:
        terminal.write(f"{error}\n")
    except Exception:  # noqa: BLE001 - that is what is looked for
        return traceback.format_exc()[-2500:]
    seconds = time.process_time() - begun
    if seconds > MOST_SECONDS:
        return f"it took {seconds:.1f} s"
    shown = _COLOUR.sub("", terminal.getvalue()).replace("\n", "")
    if not shown.isprintable():
        return f"control characters: {[c for c in shown if not c.isprintable()][:5]!r}"
    return f"{len(shown)} characters were shown" if len(shown) > 50_000_000 else ""


def limit_memory() -> None:
    """What is mapped now, and so much more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> int:
    """Run the cases."""
    kind, first, count, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    if kind == "records":
        mutator: object = RecordMutator(make_records(folder))
    else:
        mutator = CheckpointMutator(make_checkpoint(folder))
    one_case(kind, -1, folder, mutator)  # what is imported late
    limit_memory()
    failures = 0
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(60, exit=True)
        wrong = one_case(kind, number, folder, mutator)
        if wrong:
            failures += 1
            print(json.dumps({"case": number, "wrong": wrong}), flush=True)
        if failures > 20:
            break
    faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"cases": count, "failures": failures, "peak_kb": peak}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
