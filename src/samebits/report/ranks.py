"""The verdict over the ranks of a run, for people and for machines."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.comparison.ranks import LeftOutCode
from samebits.report import evidence
from samebits.report import json as json_report
from samebits.report.notes import sentence
from samebits.report.reasons import sentence_or_none
from samebits.report.remedy import Sources, quotation, shown_site
from samebits.report.style import Style, count, row, shown_path
from samebits.report.verdict_text import headline
from samebits.report.vocabulary import rank_words, some_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.comparison.ranks import LeftOut, RankComparison
    from samebits.comparison.results import Comparison, Finding
    from samebits.verification.rank_launches import LaunchComparison

_LEFT_OUT: Mapping[LeftOutCode, str] = {
    LeftOutCode.SHARDS: "{}: shards, each rank has its own part",
    LeftOutCode.OWN: (
        "{}: different on the ranks from the start and not wrapped by DistributedDataParallel, so taken for "
        "each rank's own"
    ),
    LeftOutCode.BUFFERS: (
        "buffers: each rank's own (DistributedDataParallel sends rank 0's before each forward pass)"
    ),
}


def render(result: RankComparison, style: Style, folder: str) -> str:
    """Return the report on the ranks of one run.

    Args:
        result: the comparison.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    comparison = result.comparison
    steps, parameters = count(comparison.steps, "step"), count(len(result.compared), "parameter")
    compared = f"{rank_words(result.ranks)}, {steps}, {parameters} equal at each"
    lines = _headline(comparison, style, compared)
    for number, finding in enumerate(comparison.findings):
        lines += _finding(finding, style, folder, number=number)
    lines.append("")
    if result.compared:
        lines += style.wrap(printable(f"compared: {some_names(result.compared)}"), hanging=2)
    for left_out in result.left_out:
        lines += style.wrap(printable(f"not compared: {left_out_words(left_out)}"), hanging=2)
    for note in comparison.notes:
        lines += style.wrap(printable(f"note: {sentence(note)}"), hanging=6)
    return "\n".join(lines)


def left_out_words(left_out: LeftOut) -> str:
    """Say which tensors were not compared, and why."""
    return _LEFT_OUT[left_out.code].format(some_names(left_out.names))


def render_launches(comparison: Comparison, ranks: tuple[int, ...], style: Style) -> str:
    """Return the report on two launches that were compared rank by rank.

    Args:
        comparison: over all ranks.
        ranks: those that both have.
        style: colour and width.
    """
    compared = f"2 launches, {rank_words(ranks)} each, {count(comparison.steps, 'step')}"
    lines = _headline(comparison, style, compared)
    for note in comparison.notes if comparison.verdict != "different" else ():
        lines += style.wrap(printable(f"note: {sentence(note)}"), hanging=6)
    return "\n".join(lines)


def launch_rows(result: LaunchComparison, style: Style, folder: str) -> str:
    """Return the final digest of each rank, if they are identical, and the folders of the records.

    Args:
        result: two launches, compared rank by rank.
        style: colour and width.
        folder: paths are shown relative to it.
    """
    lines: list[str] = []
    if result.comparison.verdict == "identical":
        for number, (rank, verification) in enumerate(sorted(result.ranks.items())):
            label = "" if number else "final digest"
            lines += row(label, f"rank {rank}: {verification.comparison.final_digest[0]}", style)
    records = (run.record for each in result.ranks.values() for run in each.compared)
    for number, where in enumerate(dict.fromkeys(map(os.path.dirname, records))):
        lines += row("" if number else "records", shown_path(where, folder), style)
    return "\n".join(["", *lines])


def _headline(comparison: Comparison, style: Style, compared: str) -> list[str]:
    """Return the verdict in one sentence; identical runs have no reason, so it says what was compared."""
    text = compared if comparison.verdict == "identical" else sentence_or_none(comparison.reason)
    return headline(comparison.verdict, text or "no reason was given", style)


def render_json(result: RankComparison) -> str:
    """Return the object of `compare --json`, with `ranks`, `compared` and `left_out` added."""
    fields = json.loads(json_report.render(result.comparison))
    left_out = [left_out_words(each) for each in result.left_out]
    more = {"ranks": list(result.ranks), "compared": list(result.compared), "left_out": left_out}
    return json.dumps({**fields, **more}, indent=2)


def _finding(finding: Finding, style: Style, folder: str, *, number: int) -> list[str]:
    origin = finding.origin
    lines, lines_of_evidence = [""], evidence.sentences(finding.diagnosis.evidence)
    if number:
        lines += style.wrap(printable(lines_of_evidence[0]), hanging=2)
    if origin.site is not None:
        lines.append("  " + style.paint(shown_site(origin.site, folder), "dim"))
        lines += quotation(origin.site, Sources(folder), style)
    for text in lines_of_evidence[1:]:
        lines += style.wrap(printable(f"  why: {text.replace(folder + os.sep, '')}"), hanging=4)
    if len(origin.names) > 1:
        lines += style.wrap(printable(f"  in that step: {some_names(origin.names, 6)}"), hanging=4)
    return lines
