"""Reads metrics from the output of a run and from the files that it left."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from typing import TYPE_CHECKING, Any

from samebits._text.masking import masked
from samebits.commands.spread._metrics import (
    FILLERS,
    SPLITS,
    Point,
    Series,
    is_counter,
    is_quality,
    series_of,
)
from samebits.commands.spread.summary import Failure, FailureCode, Seeding, SeedRun
from samebits.errors import SamebitsError, is_pointer
from samebits.records.kinds import EventKind
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from samebits.commands.spread.seed_runs import Ended
    from samebits.records.events import RunInfo

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_NUMBER = r"[-+]?(?:\d+(?:_\d{3})*\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|infinity|inf)"
_TOKEN = re.compile(
    rf"(?P<number>(?<![\w.])(?:{_NUMBER})(?!\w|\.\d))"
    r"|(?P<word>[A-Za-z_][\w./@^-]*)"
    r"|(?P<sep>[:=])"
    r"|(?P<slash>/)"
    r"|(?P<end>[,;|{}\t])",
    re.IGNORECASE,
)
_LONGEST_LINE = 4000
_MOST_WORDS = 3
_BAR = re.compile(r"\d+%\|[^|]*\|\s*[\d.]+\w?/[\d.]+\w?\s*\[[^,\]]*(?:,\s*[^,\]]*?/[^,\]]*)?")
_NO_NAME = re.compile(r"\.py$|[a-z](Error|Warning|Exception)$")
_CLOCK = re.compile(
    r"\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?|[\d.]+\s*(?:it/s|s/it)"
)


def points_of(text: str) -> list[Point]:
    """Return all named numbers in a text, in order.

    A line that is redrawn in place (a progress bar) counts once, in its last form.
    """
    points: list[Point] = []
    for raw in text.split("\n"):
        redrawn = [part for part in raw.split("\r") if part.strip()]
        line = _ESCAPES.sub("", redrawn[-1]).strip() if redrawn else ""
        if line and len(line) <= _LONGEST_LINE:
            points += line_points(line)
    return points


def line_points(line: str) -> list[Point]:
    """Return the named numbers of one line, each with the line's counters (`epoch 3`)."""
    pairs = _json_pairs(line)
    pairs = list(_Reader(line).pairs()) if pairs is None else pairs
    counters = tuple((name.lower(), value) for name, value in pairs if is_counter(_last(name)))
    counters = tuple((_last(name), value) for name, value in counters)
    return [Point(name, value, counters) for name, value in pairs if not is_counter(_last(name))]


def _last(name: str) -> str:
    """Return `epoch` for `train_epoch`; counters often carry the name of a split."""
    parts = re.split(r"[_/]", name.lower())
    return parts[-1] if parts[0] in SPLITS and name.lower() != "global_step" else name.lower()


def _json_pairs(line: str) -> list[tuple[str, float]] | None:
    if not line.startswith("{"):
        return None
    with contextlib.suppress(ValueError, RecursionError):
        decoded = json.loads(line)
        if isinstance(decoded, dict):
            return list(_flat(decoded, ""))
    return None


def _flat(value: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}/{key}" if name else str(key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            yield name, float(value)
    elif isinstance(value, str):
        with contextlib.suppress(ValueError):
            yield name, float(value)


class _Reader:
    """Reads the pairs of one line, token by token.

    Args:
        line: one line without escape sequences.
    """

    def __init__(self, line: str) -> None:
        # Quotes of a dict and brackets around numbers mean nothing; a clock and a rate are no metrics.
        self._tokens = list(
            _TOKEN.finditer(_CLOCK.sub(" ; ", re.sub(r"[\"'`()\[\]]|tensor\(", " ", _without_bar(line))))
        )
        self._words: list[str] = []
        self._separated = False
        self._split = ""

    def pairs(self) -> Iterable[tuple[str, float]]:
        """Yield the name and value of each named number."""
        for index, token in enumerate(self._tokens):
            kind, text = str(token.lastgroup), token.group()
            if kind == "word":
                self._word(text)
            elif kind == "sep":
                self._separated = bool(self._words)
            elif kind == "end":
                if text == "|":
                    self._split = ""
                self._begin_anew()
            elif kind == "number" and not self._follows(index, "slash"):
                name = self._name()
                if name:
                    yield name, self._value(index)
                    self._words, self._separated = [], False

    def _word(self, text: str) -> None:
        if self._separated:  # `Test set: Average loss`
            self._begin_anew()
        self._words.append(text.rstrip("."))

    def _begin_anew(self) -> None:
        self._split = next((word.lower() for word in self._words if word.lower() in SPLITS), self._split)
        self._words, self._separated = [], False

    def _follows(self, index: int, kind: str) -> bool:
        return index > 0 and self._tokens[index - 1].lastgroup == kind

    def _value(self, index: int) -> float:
        """Return the number at `index`; `9867/10000` is a ratio, except after a counter."""
        number = float(self._tokens[index].group().replace("_", ""))
        after = self._tokens[index + 1 : index + 3]
        is_ratio = len(after) == 2 and after[0].lastgroup == "slash" and after[1].lastgroup == "number"
        if not is_ratio or is_counter(self._words[-1]):
            return number
        total = float(after[1].group().replace("_", ""))
        return number / total if total else number

    def _name(self) -> str:
        """Return the name of the number that comes next; empty when the words before it name nothing."""
        words = [word for word in self._words if word and word.lower() != "seed"]
        if not words or _NO_NAME.search(words[-1]):
            return ""
        while len(words) > 1 and words[-1].lower() in FILLERS:  # `accuracy is 0.9`
            words.pop()
        known = is_quality(words[-1]) or is_counter(words[-1])
        if not self._separated and not known:
            return ""
        return self._joined(words)

    def _joined(self, words: list[str]) -> str:
        if len(words) > 1:
            split = next((word.lower() for word in words if word.lower() in SPLITS), "")
            self._split = split or self._split
            quality = [word for word in words if is_quality(word)]
            if len(words) > _MOST_WORDS and quality:
                words = quality[-1:]
            elif is_counter(words[-1]):
                words = words[-1:]
            words = [word for word in words[-_MOST_WORDS:] if word.lower() not in SPLITS]
        name = "_".join(words).lower()
        if is_counter(name) or not self._split or _begins_with_split(name):
            return name
        return f"{self._split}_{name}"


def _begins_with_split(name: str) -> bool:
    return re.split(r"[_/]", name)[0] in SPLITS


def _without_bar(line: str) -> str:
    """Return the line without tqdm's bar, clocks and rate."""
    return _BAR.sub(" ; ", line)


_LONGEST_REASON = 200


def failure_of(ended: Ended) -> Failure | None:
    """Return why a run did not finish; None when it did.

    Args:
        ended: the run.
    """
    info = _info(ended.files.with_suffix(".sbr"))
    if ended.status == 0 and info is not None and info.status in ("finished", "stopped"):
        return None
    if ended.status == 0:
        code, text = FailureCode.INCOMPLETE, ""
    else:
        text = (info.failure if info is not None else "") or masked(_last_line(ended.files))
        code = FailureCode.SAID if text else FailureCode.SILENT
    steps = info.steps if info else 0
    return Failure(ended.seed, ended.status, code, text[:_LONGEST_REASON], f"{ended.files}.err", steps)


def run_of(ended: Ended, script: str | None) -> SeedRun:
    """Return the results of a finished run.

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
    """Return the last line of the run's standard error, without the link to the messages."""
    try:
        text = files.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    lines = [line for line in lines if line and not is_pointer(line)]
    return lines[-1] if lines else ""


def _printed(files: Path) -> tuple[Series, ...]:
    # One stream after the other: the order of lines across the two is not known.
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
    return tuple(series for source, named in points.items() for series in series_of(source, named))


def _state_and_seedings(reader: RecordReader) -> tuple[str, tuple[Seeding, ...]]:
    state, seedings = b"", []
    for event in reader.events(kinds=(EventKind.STEP, EventKind.RNG)):
        if event.kind == EventKind.STEP and event.digests:
            state = b"".join(event.digests)
        elif event.op == "seed" and event.site is not None:
            seeding = Seeding(event.site.file, event.site.line, event.arguments)
            if seeding not in seedings:
                seedings.append(seeding)
    return hashlib.sha256(state).hexdigest() if state else "", tuple(seedings)
