"""The page on two different programs: the first tensor that differs, and how it goes on from there."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from samebits.comparison.changed_code import code_digests
from samebits.comparison.environments import compare_environments
from samebits.report.html.document import Block, Facts, Figure, Items, Page, Section, Table
from samebits.report.html.finding_section import quoted
from samebits.report.html.labels import told_apart
from samebits.report.html.run_section import environments_section
from samebits.report.html.svg import NARROW, WIDE, Ink, drawn, power_of_ten
from samebits.report.plot import can_plot
from samebits.report.programs import HEAD, called, cells, first_rows, reason, remarks, verdict_words
from samebits.report.remedy import Sources
from samebits.report.style import count, number, shown_path
from samebits.report.vocabulary import script_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.programs.outcome import ProgramComparison, Row
    from samebits.comparison.results import Verdict
    from samebits.records.events import RunInfo
    from samebits.report.html.document import Tone

_TONES: dict[Verdict, Tone] = {"identical": "good", "different": "bad", "not_judged": "unsure"}
_MOST_DRAWN = 30
_FEWEST_DRAWN = 2  # one is told by a sentence
_LONGEST_LABEL = 32
_LEFT = 0.7  # of the axis: a distance of 1 ULP is not at its edge
_MOST_ROWS = 200


def programs_page(
    result: ProgramComparison, infos: tuple[RunInfo, RunInfo], names: tuple[str, str], folder: str
) -> Page:
    """Return the page on a comparison of two programs.

    Args:
        result: of the comparison.
        infos: the facts of each run.
        names: paths of their records.
        folder: the working folder; paths are shown relative to it.
    """
    scripts = " and ".join(dict.fromkeys(script_name(info.command) for info in infos))
    return Page(
        title=f"{scripts}: two programs compared tensor by tensor",
        verdict=verdict_words(result),
        tone=_TONES[result.verdict],
        answer=f"{reason(result)}.",
        facts=Facts(tuple(_facts(result, infos, names, folder))),
        sections=tuple(_sections(result, infos, folder)),
    )


def _facts(
    result: ProgramComparison, infos: tuple[RunInfo, RunInfo], names: tuple[str, str], folder: str
) -> list[tuple[str, str]]:
    rows = []
    for letter, info, name in zip("AB", infos, names, strict=True):
        rows.append((f"program {letter}", shlex.join(info.command)))
        rows.append(
            (f"record {letter}", f"{shown_path(name, folder)}, torch {info.torch or 'never imported'}")
        )
    rows.append(("compared", f"{count(result.tensors, 'tensor')} under {count(result.names, 'name')}"))
    return rows


def _sections(result: ProgramComparison, infos: tuple[RunInfo, RunInfo], folder: str) -> list[Section]:
    sections = []
    if result.rows:
        code = (code_digests(infos[0]), code_digests(infos[1]))
        sections.append(_first_section(result.rows[0], Sources(folder, code=code)))
        table = _table("Names whose tensors differ, in their order", result.rows)
        sections.append(Section("names", "From there on", (*_figures(result.rows, "names"), table)))
    if result.accepted:
        table = _table("Names that differ within the tolerance", result.accepted)
        blocks = (*_figures(result.accepted, "accepted"), table)
        sections.append(Section("accepted", "Within the tolerance", blocks))
    texts = remarks(result)
    if texts:
        sections.append(Section("notes", "Notes", (Items(tuple(texts)),)))
    return [*sections, environments_section(infos, compare_environments(*infos), "program A")]


def _first_section(first: Row, sources: Sources) -> Section:
    """Show the first tensor that differs, and the lines that made it."""
    lines = [
        quoted(place.site, sources, f"{letter}: ", of_second=letter == "B")
        for letter, place in zip("AB", (first.first, first.second), strict=True)
        if place.site is not None
    ]
    return Section(
        "first", "The first tensor that differs", (Facts(tuple(first_rows(first, sources.folder))), *lines)
    )


def _table(caption: str, rows: Sequence[Row]) -> Table:
    shown = tuple(cells(each) for each in rows[:_MOST_ROWS])
    return Table(caption, HEAD, shown, numbers=frozenset({2, 3, 4}), left_out=len(rows) - len(shown))


def _figures(rows: Sequence[Row], ident: str) -> list[Block]:
    """Draw how far the tensors are apart, name by name; nothing where no two have a distance."""
    measured = [each for each in rows if each.distance.max_ulp]
    shown = measured[:_MOST_DRAWN]
    if len(shown) < _FEWEST_DRAWN:
        return []

    def draw(drawing: Any, width: float) -> None:
        _draw(drawing.subplots(), shown, _LONGEST_LABEL if width == WIDE else _LONGEST_LABEL // 2)

    height = 0.8 + 0.2 * len(shown)
    wide, narrow = ("", "")
    if can_plot():
        wide = drawn(draw, f"{ident}-wide", WIDE, height)
        narrow = drawn(draw, f"{ident}-narrow", NARROW, height)
    caption = (
        "The names in their order. For each the largest distance between two elements of its first tensor "
        "that differs, in units in the last place (ULP), on a logarithmic axis."
    )
    if len(measured) > len(shown):
        caption += f" {number(len(measured) - len(shown))} more names are not drawn."
    return [Figure(f"figure-{ident}", "How far apart", _alt(shown), caption, wide, narrow)]


def _draw(axes: Any, rows: Sequence[Row], longest: int) -> None:
    y = range(len(rows))
    ulps = [each.distance.max_ulp or 1 for each in rows]
    axes.hlines(y, _LEFT, ulps, color=Ink.GRID.value, linewidth=1.2)
    axes.plot(ulps, y, color=Ink.FIRST.value, marker="o", markersize=5, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(power_of_ten)
    axes.minorticks_off()
    axes.set_xlim(_LEFT, 3 * max(ulps))
    labels = told_apart([called(each.first, short=True) for each in rows], longest)
    axes.set_yticks(y, labels, fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("largest distance in ULP")


def _alt(rows: Sequence[Row]) -> str:
    """Say in words what the drawing shows."""
    first, most = rows[0], max(rows, key=lambda each: each.distance.max_ulp or 0)
    return (
        f"{called(first.first)}: {number(first.distance.max_ulp or 0)} ULP; at most "
        f"{number(most.distance.max_ulp or 0)} ULP, at {called(most.first)}. The table below has the numbers."
    )
