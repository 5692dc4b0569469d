"""The page on two runs: the verdict, where the difference began, why, and what to change."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from samebits.report.html.document import Facts, Page, Section
from samebits.report.html.finding_section import (
    origin_section,
    others_section,
    remedy_section,
    reported_section,
)
from samebits.report.html.growth_section import growth_section
from samebits.report.html.op_section import op_section
from samebits.report.html.replay_section import replay_section
from samebits.report.html.run_section import environments_section, notes_section, switches_section
from samebits.report.html.step_section import timeline_section
from samebits.report.remedy import Sources
from samebits.report.style import count, number, shown_path
from samebits.report.verdict_text import answer, is_listed
from samebits.report.vocabulary import script_name

if TYPE_CHECKING:
    from samebits.commands.compared_facts import ComparedFacts
    from samebits.comparison.growth import Growth
    from samebits.comparison.results import Verdict
    from samebits.report.html.document import Tone
    from samebits.verification.results import Verification

_TONES: dict[Verdict, Tone] = {"identical": "good", "different": "bad", "not_judged": "unsure"}


def comparison_page(result: Verification, facts: ComparedFacts | None, folder: str) -> Page:
    """Return the page on a verification, or on two records that were compared.

    Args:
        result: the verdict and its explanation.
        facts: what the records hold beyond it; None where two runs were not compared.
        folder: the working folder; paths are shown relative to it.
    """
    comparison = result.comparison
    return Page(
        title=f"{script_name(_command(result, facts))}: two runs compared bit for bit",
        verdict=comparison.verdict.replace("_", " "),
        tone=_TONES[comparison.verdict],
        answer=f"{answer(result)}.",
        facts=Facts(tuple(_facts(result, facts, folder))),
        sections=tuple(section for section in _sections(result, facts, folder) if section is not None),
    )


def _sections(result: Verification, facts: ComparedFacts | None, folder: str) -> list[Section | None]:
    comparison = result.comparison
    replaced = result.fix.replaced() if result.fix is not None else {}
    sources = Sources(folder, own=bool(result.seconds), replaced=replaced, code=result.code)
    elements = facts.elements if facts is not None else ()
    sections = [
        reported_section(comparison, sources),
        origin_section(result, elements, sources)
        if comparison.findings and not is_listed(comparison)
        else None,
        remedy_section(result, folder),
    ]
    if facts is not None and facts.chart is not None and comparison.verdict == "different":
        sections.append(timeline_section(facts.chart, facts.infos, measured=_is_measured(facts.growth)))
    if facts is not None and facts.growth is not None and _is_measured(facts.growth):
        sections.append(growth_section(facts.growth))
    if facts is not None and facts.ops is not None:
        sections.append(op_section(facts.ops, folder))
    sections += [
        others_section(comparison, folder),
        replay_section(comparison.replayed, sources),
        notes_section(comparison.notes),
    ]
    if facts is not None:
        sections.append(environments_section(facts.infos, facts.environment))
        sections.append(switches_section(facts.infos[0]))
    return sections


def _is_measured(growth: Growth | None) -> bool:
    """Tell whether a distance is known, or known to mean nothing."""
    return growth is not None and bool(growth.measured or growth.unmeasurable)


def _command(result: Verification, facts: ComparedFacts | None) -> tuple[str, ...]:
    """Return the command as the record has it, with secrets masked."""
    return facts.infos[0].command if facts is not None else result.command[:1]


def _facts(result: Verification, facts: ComparedFacts | None, folder: str) -> list[tuple[str, str]]:
    comparison = result.comparison
    rows = [("command", shlex.join(_command(result, facts)))]
    rows += [("child process", comparison.child)] if comparison.child else []
    if facts is not None:
        records = " and ".join(shown_path(name, folder) for name in facts.names)
        levels = " and ".join(dict.fromkeys(info.level for info in facts.infos))
        rows += [("records", f"{records} ({levels} level)"), ("torch", facts.infos[0].torch)]
    rows.append(("compared", f"{count(comparison.steps, 'step')}, {number(result.n_values)} digests"))
    if comparison.verdict == "different":
        rows.append(("training", _state(result)))
    if comparison.verdict == "identical":
        rows.append(("final digest", comparison.final_digest[0]))
    if result.seconds:
        rows.append(("runs", f"{len(result.runs)} in {result.seconds:.0f} s"))
    return [row for row in rows if row[1]]


def _state(result: Verification) -> str:
    """Say whether what was trained and saved differs, or only what was reported."""
    state = result.comparison.state
    if state == "identical":
        return "identical: only values that are reported differ"
    return "different" if state == "different" else "not judged"
