"""What an experiment tracker is told about a record: texts, digests, and the files to attach."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text.masking import masked
from samebits._text.printable import printable
from samebits.commands.compared_facts import compared_facts
from samebits.commands.lock.entry import locked_environment
from samebits.comparison.course import course
from samebits.comparison.step_digests import step_digests
from samebits.environment.snapshot import fact_at, table_at
from samebits.records.reader import RecordReader
from samebits.report.html.comparison_page import comparison_page
from samebits.report.html.record_page import record_page
from samebits.report.html.render import render
from samebits.report.html.sharing import shareable
from samebits.verification import verify_records

if TYPE_CHECKING:
    from samebits.comparison.step_digests import StepDigest
    from samebits.records.events import RunInfo
    from samebits.report.html.document import Page

PREFIX = "samebits."
_SIZE = 16  # bytes of the digest of an environment


@dataclass(frozen=True)
class RecordFacts:
    """What a tracker is told about one record. All texts are masked as in a report.

    Args:
        record: path of the record.
        tags: short texts by name, such as `samebits.torch`; what the record does not know is left out.
        digests: one line for each step, after a line with the names of the columns.
        page: the report as one HTML page.
    """

    record: str
    tags: dict[str, str]
    digests: str
    page: str


def record_facts(record: str | os.PathLike[str], other: str | os.PathLike[str] | None = None) -> RecordFacts:
    """Read what a tracker is told about a record.

    Args:
        record: path of the record of a run that has ended.
        other: path of the record of its twin run; None for no verdict.

    Raises:
        SamebitsError: a record is missing, is no record, or is damaged.
    """
    path = os.fspath(record)
    with RecordReader(path) as reader:
        tags, digests = _tags(reader.info), step_digests(reader)
        page = None if other is not None else record_page(course(reader), path, os.getcwd())
    if other is not None:
        page, verdict = _compared(path, os.fspath(other))
        tags.update(verdict)
    if digests:
        tags["final_state"] = next((each.state for each in reversed(digests) if each.state), "")
    shown = {PREFIX + name: printable(masked(text)) for name, text in tags.items() if text}
    assert page is not None  # noqa: S101  # one of the two above
    return RecordFacts(path, shown, _table(digests or ()), render(shareable(page, os.getcwd())))


def written(facts: RecordFacts, folder: str) -> tuple[str, str]:
    """Write the page and the digests into a folder, to be attached.

    Args:
        facts: of the record.
        folder: exists already.

    Returns:
        The paths of both, named after the record.
    """
    stem = Path(facts.record).stem
    page, digests = Path(folder, f"{stem}.html"), Path(folder, f"{stem}-digests.txt")
    page.write_text(facts.page, encoding="utf-8", errors="backslashreplace")
    digests.write_text(facts.digests, encoding="utf-8")
    return str(page), str(digests)


def _compared(first: str, second: str) -> tuple[Page, dict[str, str]]:
    result = verify_records(first, second)
    page = comparison_page(result, compared_facts(result), os.getcwd())
    comparison = result.comparison
    return page, {"verdict": comparison.verdict, "final_digest": comparison.final_digest[0]}


def _tags(info: RunInfo) -> dict[str, str]:
    environment, control = info.environment, info.control
    switches = {name: value for name, value in table_at(environment, "switches").items() if value}
    return {
        "command": " ".join(info.command),
        "status": info.status,
        "steps": str(info.steps),
        "torch": info.torch,
        "seed": _text(fact_at(control, "seed")),
        "portable": _text(fact_at(control, "portable")),
        "switches": _text(switches or None),
        "environment": _digest(locked_environment(info)),
        "git_commit": _text(fact_at(environment, "source", "commit")),
        "git_dirty": _text(fact_at(environment, "source", "changed")),
    }


def _text(fact: Any) -> str:
    if fact is None:
        return ""
    return fact if isinstance(fact, str) else json.dumps(fact, sort_keys=True)


def _digest(environment: dict[str, Any]) -> str:
    """Return a digest of the part of the environment that can change bits."""
    data = json.dumps(environment, sort_keys=True).encode()
    return hashlib.blake2b(data, digest_size=_SIZE).hexdigest()


def _table(digests: tuple[StepDigest, ...]) -> str:
    lines = [f"{each.first}\t{each.state or '-'}\t{each.values or '-'}" for each in digests]
    return "\n".join(["step\tstate\tvalues", *lines, ""])
