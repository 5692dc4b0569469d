"""A resume check as one JSON object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from samebits.report.json import site_json
from samebits.report.notes import sentences
from samebits.report.reasons import sentence_or_none
from samebits.report.resume_reasons import evidence_lines
from samebits.report.resume_sentences import sentence

if TYPE_CHECKING:
    from samebits.commands.resume_check.runs import Kill, ResumeCheck
    from samebits.commands.resume_facts import FirstDifference, Omission

SCHEMA = 1


def render(result: ResumeCheck) -> str:
    """Return the verdict over all kills, and each kill."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "verdict": result.verdict,
            "steps": result.steps,
            "reason": sentence_or_none(result.reason) or "",
            "kills": [_kill(kill) for kill in result.kills],
            "notes": sentences(result.notes),
            "final_digest": list(result.final_digest),
            "interrupted": result.interrupted,
        },
        indent=2,
        allow_nan=False,
    )


def render_error(message: str) -> str:
    """Return the object for a check that failed because of an error."""
    fields = {
        "schema": SCHEMA,
        "verdict": "not_judged",
        "steps": 0,
        "reason": message,
        "kills": [],
        "notes": [],
    }
    return json.dumps({**fields, "final_digest": ["", ""], "interrupted": False}, indent=2)


def _kill(kill: Kill) -> dict[str, Any]:
    return {
        "after": kill.after,
        "verdict": kill.verdict,
        "reason": sentence_or_none(kill.reason),
        "resume_args": list(kill.resume_args),
        "resumed_at": kill.resumed_at,
        "began_anew": kill.is_fresh,
        "identical_steps": kill.compared,
        "first_difference": None if kill.difference is None else _difference(kill.difference),
        "not_restored": [_omission(kill, omission) for omission in kill.omissions],
        "notes": sentences(kill.notes),
        "written": list(kill.written),
    }


def _difference(first: FirstDifference) -> dict[str, Any]:
    return {
        "step": first.step,
        "kind": first.kind,
        "text": sentence(first.fact),
        "site": site_json(first.site),
    }


def _omission(kill: Kill, omission: Omission) -> dict[str, Any]:
    return {
        "what": omission.part,
        "text": sentence(omission.fact),
        "evidence": list(evidence_lines(kill, omission)),
    }
