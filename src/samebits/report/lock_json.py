"""A check against a lock file, as one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from samebits._text.printable import printable_lines
from samebits.report import json as verdict_json
from samebits.report import lock_sentences as sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.commands.lock.outcome import Change, EntryResult

SCHEMA = 1


def render(results: Sequence[EntryResult], verdict: str) -> str:
    """Return the object.

    Args:
        results: of the entries.
        verdict: over all of them.
    """
    document = {"schema": SCHEMA, "verdict": verdict, "entries": [_entry(each) for each in results]}
    return printable_lines(json.dumps(document, indent=2)) + "\n"


def _entry(result: EntryResult) -> dict[str, Any]:
    mismatch = result.mismatch
    row = None if mismatch is None else mismatch.locked or mismatch.here
    return {
        "name": result.entry.name,
        "command": list(result.entry.command),
        "verdict": result.verdict,
        "reason": result.error[0] or sentences.where_text(result) or None,
        "slug": result.error[1] or None,
        "step": None if row is None or row.first < 0 else row.first,
        "state_differs": None if mismatch is None else mismatch.of_state,
        "blame": result.blame,
        "proof": result.proof.value if result.blame is not None else None,
        "why": sentences.blame_text(result) or None,
        "change": None if result.change is None else _change(result.change),
        "settings": {each.name: each.value for each in result.settings},
        "tried": {each.name: each.value for each in result.tried},
        "old_code": result.old_code,
        "begins": result.begins,
        "inputs": [sentences.fact(each) for each in result.inputs],
        "platform": [sentences.fact(each) for each in result.platform],
        "unknown": list(sentences.unknown(result)),
        "obstacles": list(result.obstacles),
        "operation": _operation(result),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "commit": None if change.commit is None else asdict(change.commit),
        "good": asdict(change.good),
        "relation": change.relation,
        "hunks": [asdict(hunk) for hunk in change.hunks],
        "others": change.others,
        "files": list(change.files),
        "proof": change.proof.value,
    }


def _operation(result: EntryResult) -> dict[str, Any] | None:
    """Return the finding as `verify --json` has it."""
    finding = result.finding
    return None if finding is None else verdict_json.finding_json(finding)
