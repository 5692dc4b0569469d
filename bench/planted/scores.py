"""How well one verdict answers what is true of a script, and the figures over all."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from corpus import CAUSES, Line, Script

NEAR_LINES = 2


@dataclass(frozen=True)
class Score:
    """One script and what `samebits verify` said of it."""

    name: str
    expected: str
    verdict: str
    line: str  # hit, entry, near, miss; a dash where there is nothing to find or nothing was found
    named: bool  # the line where chance enters is named in the first finding, as site or in its evidence
    cause: str  # hit, unknown, wrong; a dash as above
    found_cause: str
    found_line: str
    seconds: float
    remedy: str  # confirmed, open, none; a dash as above
    applied: str = "-"  # with the lines of a remedy called tried: identical, different, failed; else a dash
    varies: bool = True  # whether plain runs differ; not looked at where verify saw a difference


def sites(finding: dict[str, Any]) -> list[Line]:
    """The lines that a finding shows as its place."""
    places = [finding[key] for key in ("site", "forward_site") if finding.get(key)]
    return [(os.path.basename(place["file"]), place["line"]) for place in places]


def score_line(script: Script, findings: list[dict[str, Any]]) -> str:
    """How good the place of the first finding is."""
    first = set(sites(findings[0])) if findings else set()
    if first & script.planted:
        return "hit"
    if first & script.enters:
        return "entry"
    later = {site for finding in findings[1:] for site in sites(finding)}
    wanted = script.planted | script.enters
    close = {(name, line + by) for name, line in wanted for by in range(-NEAR_LINES, NEAR_LINES + 1)}
    return "near" if first & close or later & wanted else "miss"


def names_planted(script: Script, findings: list[dict[str, Any]]) -> bool:
    """Whether the first finding names the line where chance enters, in whatever place."""
    if not findings:
        return False
    text = " ".join(findings[0]["evidence"])
    told = {(name, int(line)) for name, line in re.findall(r"([\w.-]+\.py):(\d+)", text)}
    return bool((told | set(sites(findings[0]))) & script.planted)


def score_cause(script: Script, cause: str) -> str:
    """Whether that is the cause, honest, or wrong."""
    if cause in script.causes:
        return "hit"
    return "unknown" if cause == "unknown" else "wrong"


def score_remedy(findings: list[dict[str, Any]]) -> str:
    """Whether the first finding has a remedy whose very lines were run with success."""
    remedy = findings[0].get("remedy") if findings else None
    if remedy is None:
        return "none"
    return "confirmed" if remedy["confirmed"] else "open"


def score(script: Script, found: dict[str, Any], *, seconds: float) -> Score:
    """Compare the answer of `verify --json` with what is true of the script."""
    findings = found["findings"]
    different = found["verdict"] == "different"
    judged = different and not script.is_clean
    cause = findings[0]["cause"] if findings else "unknown"
    place = next(iter(sites(findings[0])), None) if findings else None
    return Score(
        name=script.name,
        expected=script.cause,
        verdict=found["verdict"],
        line=score_line(script, findings) if judged else "-",
        named=judged and names_planted(script, findings),
        cause=score_cause(script, cause) if judged else "-",
        found_cause=cause if different else "-",
        found_line=f"{place[0]}:{place[1]}" if different and place else "-",
        seconds=round(seconds, 1),
        remedy=score_remedy(findings) if judged else "-",
        applied=found.get("applied", "-"),
        varies=found.get("varies", True),
    )


def share(part: int, whole: int) -> str:
    """`3 of 4 (75 %)`."""
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none"


def figures(scores: list[Score]) -> list[str]:
    """The published figures, one per line, then one line for each cause."""
    constant = [score.name for score in scores if not score.varies]
    planted = [score for score in scores if score.expected in CAUSES and score.varies]
    clean = [score for score in scores if score.expected not in CAUSES]
    lines = []
    if planted:
        lines += planted_figures(planted)
    if clean:
        alarms = sum(score.verdict == "different" for score in clean)
        lines.append(f"{'false alarms':24} {share(alarms, len(clean))}")
    if constant:
        lines.append(f"{'not counted':24} {', '.join(constant)}: 6 plain runs printed the same")
    unjudged = sum(score.verdict == "not_judged" for score in scores)
    lines.append(f"{'not judged':24} {share(unjudged, len(scores))}")
    return lines + (by_cause(planted) if planted else [])


def planted_figures(planted: list[Score]) -> list[str]:
    """Figures over the planted scripts; each rate is of all of them, seen to differ or not."""
    whole = len(planted)
    source = sum(score.line == "hit" for score in planted)
    origin = sum(score.line in {"hit", "entry"} for score in planted)
    counted = [
        ("seen to differ", sum(score.verdict == "different" for score in planted)),
        ("origin line", origin),
        ("  the source itself", source),
        ("  or named as evidence", sum(score.named for score in planted)),
        ("cause right", sum(score.cause == "hit" for score in planted)),
        ("cause unknown", sum(score.cause == "unknown" for score in planted)),
        ("cause wrong", sum(score.cause == "wrong" for score in planted)),
        ("remedy confirmed", sum(score.remedy == "confirmed" for score in planted)),
    ]
    lines = [f"{name:24} {share(part, whole)}" for name, part in counted]
    applied = [score.applied for score in planted if score.applied != "-"]
    if applied:
        lines.append(f"{'  repeatable with it':24} {share(applied.count('identical'), len(applied))}")
    return lines


def by_cause(planted: list[Score]) -> list[str]:
    """One line for each cause."""
    lines = ["", f"{'by cause':24} {'scripts':>7} {'seen':>5} {'line':>5} {'cause':>6}"]
    for cause in CAUSES:
        group = [score for score in planted if score.expected == cause]
        if group:
            seen = sum(score.verdict == "different" for score in group)
            line = sum(score.line in {"hit", "entry"} for score in group)
            right = sum(score.cause == "hit" for score in group)
            lines.append(f"{cause:24} {len(group):7} {seen:5} {line:5} {right:6}")
    return lines
