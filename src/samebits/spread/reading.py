"""From the files that a run leaves to what is kept of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.recording.store import RecordReader
from samebits.spread.printed import points_of
from samebits.spread.results import Failure, Seeding, SeedRun
from samebits.spread.series import Point, Series, series_of

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.recording.events import RunInfo
    from samebits.spread.children import Ended

_LONGEST_REASON = 200


def failure_of(ended: Ended) -> Failure | None:
    """Why a run did not finish; None when it did.

    Args:
        ended: the run.
    """
    info = _info(ended.files.with_suffix(".sbr"))
    stopped = info is not None and info.status == "stopped"
    if ended.status == 0 and info is not None and info.status in ("finished", "stopped"):
        return None
    if ended.status == 0 and not stopped:
        reason = "its record is incomplete"
    else:
        reason = (info.failure if info is not None else "") or _last_line(ended.files) or "no message"
    return Failure(
        ended.seed, ended.status, reason[:_LONGEST_REASON], f"{ended.files}.err", info.steps if info else 0
    )


def run_of(ended: Ended, script: str | None) -> SeedRun:
    """What is kept of a finished run.

    Args:
        ended: the run.
        script: path of the script, None for a module.

    Raises:
        SamebitsError: its record cannot be read.
    """
    rows, last = _logged_values(ended.files)
    files = dict(last["files"])
    if ended.script_digest and script is not None:
        files[os.path.abspath(script)] = ended.script_digest
    with RecordReader(ended.files.with_suffix(".sbr")) as reader:
        state, seedings = _state_and_seedings(reader)
        steps = reader.info.steps
    return SeedRun(
        seed=ended.seed,
        seconds=round(ended.seconds, 3),
        steps=steps,
        state=state,
        threads=last["threads"],
        seedings=seedings,
        saved=tuple(last["saved"]),
        files=tuple(sorted(files.items())),
        series=(*_printed(ended.files), *_series_of_rows(rows)),
    )


def _info(record: Path) -> RunInfo | None:
    try:
        with RecordReader(record) as reader:
            return reader.info
    except SamebitsError:
        return None


def _last_line(files: Path) -> str:
    """The last line that the run wrote to its standard error, the link to the messages left out."""
    try:
        text = files.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    lines = [line for line in lines if line and not line.startswith("see docs/messages.md#")]
    return lines[-1] if lines else ""


def _printed(files: Path) -> tuple[Series, ...]:
    # One after the other: the order of lines on two streams is not known.
    texts = [
        files.with_suffix(suffix).read_text(encoding="utf-8", errors="replace") for suffix in (".err", ".out")
    ]
    return series_of("printed", [point for text in texts for point in points_of(text)])


def _logged_values(files: Path) -> tuple[list[list[Any]], dict[str, Any]]:
    rows: list[list[Any]] = []
    last: dict[str, Any] = {"files": {}, "saved": [], "threads": None}
    with open(f"{files}.values.jsonl", encoding="utf-8") as lines:
        for line in lines:
            decoded = json.loads(line)
            if isinstance(decoded, dict):
                last.update(decoded)
            else:
                rows.append(decoded)
    return rows, last


def _series_of_rows(rows: list[list[Any]]) -> tuple[Series, ...]:
    points: dict[str, list[Point]] = {}
    for source, name, step, value in rows:
        counters = () if step is None else (("step", float(step)),)
        shown = name if source == "logged" else f"{source}@{name}" if name else source
        points.setdefault(source, []).append(Point(shown, float(value), counters))
    return tuple(series for source, found in points.items() for series in series_of(source, found))


def _state_and_seedings(reader: RecordReader) -> tuple[str, tuple[Seeding, ...]]:
    state, seedings = b"", []
    for event in reader.events(kinds=("step", "rng")):
        if event.kind == "step" and event.digests:
            state = b"".join(event.digests)
        elif event.op == "seed" and event.site is not None:
            seeding = Seeding(event.site.file, event.site.line, event.arguments)
            if seeding not in seedings:
                seedings.append(seeding)
    return hashlib.sha256(state).hexdigest() if state else "", tuple(seedings)
