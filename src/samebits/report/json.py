"""The verdict as one JSON object, for machines: the schema of docs/reference/cli.md."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from samebits._text.masking import masked_code
from samebits.report import evidence
from samebits.report.notes import sentences
from samebits.report.reasons import sentence_or_none
from samebits.report.sentences import skip_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.results import Comparison, Finding, Remedy, RemedyTrial
    from samebits.recording.distance import Difference
    from samebits.verification.results import Fix

SCHEMA = 1


def render(comparison: Comparison, fix: Fix | None = None) -> str:
    """Return the object; the first finding is the first origin.

    Args:
        comparison: the verdict.
        fix: the patch, if one was asked for; the object then has the key `fix`.
    """
    more = {} if fix is None else {"fix": _fix(fix)}
    return _text(
        {
            "schema": SCHEMA,
            "verdict": comparison.verdict,
            "state": comparison.state,
            "steps": comparison.steps,
            "reason": sentence_or_none(comparison.reason),
            "child": comparison.child or None,
            "findings": [finding_json(finding) for finding in _findings(comparison)],
            "reported": [finding_json(finding) for finding in comparison.reported],
            "notes": sentences(comparison.notes),
            "internal_error": _last_line(comparison.failure),
            "final_digest": list(comparison.final_digest),
            "replay": _replay(comparison),
            **more,
        }
    )


def render_error(message: str, failure: str = "") -> str:
    """Return the object for runs that could not be judged because of an error.

    Args:
        message: what went wrong.
        failure: the traceback, if the error is a bug in samebits.
    """
    return _text(
        {
            "schema": SCHEMA,
            "verdict": "not_judged",
            "state": "not_judged",
            "steps": 0,
            "reason": message,
            "child": None,
            "findings": [],
            "reported": [],
            "notes": [],
            "internal_error": _last_line(failure),
            "final_digest": ["", ""],
            "replay": None,
        }
    )


def _findings(comparison: Comparison) -> tuple[Finding, ...]:
    """Return the origins, followed by the operations that did not repeat."""
    return comparison.findings + (comparison.replayed.findings if comparison.replayed is not None else ())


def _replay(comparison: Comparison) -> dict[str, Any] | None:
    if comparison.replayed is None:
        return None
    summary = comparison.replayed.summary
    return {
        "times": summary.times,
        "calls": summary.calls,
        "ops": summary.ops,
        "steps": summary.steps,
        "unrepeated": len(summary.unrepeated),
        "skipped": [
            {"reason": skip_words(item), "op": item.op, "calls": item.calls} for item in summary.skipped
        ],
    }


def _last_line(traceback: str) -> str | None:
    lines = traceback.strip().splitlines()
    return lines[-1] if lines else None


def _text(fields: dict[str, Any]) -> str:
    return json.dumps(fields, indent=2, allow_nan=False)


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as an element of `findings`."""
    origin = finding.origin
    remedy = finding.remedy
    return {
        "kind": origin.kind,
        "step": origin.step,
        "op": origin.op,
        "module": origin.module,
        "site": site_json(origin.site),
        "other_site": site_json(origin.other_site),
        "forward_site": site_json(origin.forward_site),
        "inputs_equal": origin.inputs_equal,
        "difference": _difference(origin.difference),
        "cause": finding.cause,
        "evidence": evidence.sentences(finding.diagnosis.evidence),
        "confirmed_by": evidence.confirmation(finding.diagnosis.confirmed_by),
        "entered_site": site_json(origin.entered_site),
        "sources": [
            {"op": source.op, "site": site_json(source.site), "cause": source.cause}
            for source in origin.sources
        ],
        "remedy": None if remedy is None else _remedy(remedy),
    }


def _lines(lines: Sequence[str]) -> list[str]:
    return [masked_code(line) for line in lines]


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "text": remedy.text,
        "confirmed": remedy.confirmed,
        "pairs": remedy.pairs,
        "controls": list(remedy.controls),
        "before": masked_code(remedy.before) or None,
        "after": masked_code(remedy.after) or None,
        "changes": [
            {"file": c.file, "line": c.line, "before": _lines(c.before), "after": _lines(c.after)}
            for c in remedy.changes
        ],
        "trial": None if remedy.trial is None else _trial(remedy.trial),
    }


def _trial(trial: RemedyTrial) -> dict[str, Any]:
    return {
        "of": trial.of,
        "identical": trial.identical,
        "pairs": trial.pairs,
        "pins": list(trial.interventions),
        "steps": trial.steps,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "diff": fix.diff.decode(errors="replace") or None,
        "diff_file": fix.diff_file or None,
        "changes": list(fix.patch.why) if fix.patch is not None else [],
        "confirmed": fix.confirmed,
        "pairs": fix.pairs,
        "still": sentence_or_none(fix.still),
        "refusals": list(fix.refusals),
        "applied": fix.applied,
    }


def site_json(site: Site | None) -> dict[str, Any] | None:
    """Return a line of source as an object."""
    return None if site is None else {"file": site.file, "line": site.line, "function": site.function}


def _difference(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    max_abs = difference.max_abs
    if max_abs is not None and not math.isfinite(max_abs):
        max_abs = None  # JSON has no infinity and no NaN
    return {
        "elements": difference.elements,
        "total": difference.total,
        "compared": difference.total if difference.compared is None else difference.compared,
        "max_ulp": difference.max_ulp,
        "max_abs": max_abs,
    }
