"""The verdict as one JSON object, for machines: the schema of docs/cli.md."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison, Finding
    from samebits.hooks.frames import Site
    from samebits.recording.distance import Difference

SCHEMA = 1


def render(comparison: Comparison) -> str:
    """The object; the first finding is the first origin."""
    return _text(
        {
            "schema": SCHEMA,
            "verdict": comparison.verdict,
            "steps": comparison.steps,
            "reason": comparison.reason,
            "findings": [_finding(finding) for finding in _findings(comparison)],
            "notes": list(comparison.notes),
            "final_digest": list(comparison.final_digest),
            "replay": _replay(comparison),
        }
    )


def render_error(message: str) -> str:
    """The object for what could not be judged because of an error."""
    return _text(
        {
            "schema": SCHEMA,
            "verdict": "not_judged",
            "steps": 0,
            "reason": message,
            "findings": [],
            "notes": [],
            "final_digest": ["", ""],
            "replay": None,
        }
    )


def _findings(comparison: Comparison) -> tuple[Finding, ...]:
    """The origins, and after them the operations that did not repeat."""
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
        "skipped": [{"reason": item.reason, "op": item.op, "calls": item.calls} for item in summary.skipped],
    }


def _text(fields: dict[str, Any]) -> str:
    return json.dumps(fields, indent=2, allow_nan=False)


def _finding(finding: Finding) -> dict[str, Any]:
    remedy = finding.remedy
    return {
        "kind": finding.kind,
        "step": finding.step,
        "op": finding.op,
        "module": finding.module,
        "site": _site(finding.site),
        "forward_site": _site(finding.forward_site),
        "inputs_equal": finding.inputs_equal,
        "difference": _difference(finding.difference),
        "cause": finding.cause,
        "evidence": list(finding.evidence),
        "remedy": None if remedy is None else {"text": remedy.text, "confirmed": remedy.confirmed},
    }


def _site(site: Site | None) -> dict[str, Any] | None:
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
        "max_ulp": difference.max_ulp,
        "max_abs": max_abs,
    }
