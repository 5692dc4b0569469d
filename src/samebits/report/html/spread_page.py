"""The page on a spread: the curves of the seeds, their final values, and what they show."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

from samebits.report.html.document import Block, Facts, Figure, Items, Page, Section, Table
from samebits.report.html.svg import NARROW, WIDE, Ink, drawn
from samebits.report.plot import Palette, can_plot, draw_curves, draw_finals
from samebits.report.spread_sentences import NAMES, failure_sentence, remark_sentences
from samebits.report.spread_text import compared_seeds, contrast_rows, figure, run_rows, statistics_rows
from samebits.report.style import count
from samebits.report.vocabulary import script_name

if TYPE_CHECKING:
    from samebits.commands.spread.summary import Measured, Spread
    from samebits.report.html.document import Tone

_INKS = Palette((Ink.FIRST.value, Ink.SECOND.value), Ink.MUTED.value, Ink.GRID.value, estimate=Ink.TEXT.value)
_TONES: dict[str, Tone] = {"yes": "good", "no": "plain", "cannot tell": "unsure"}
_MOST_ROWS = 200


def spread_page(spread: Spread) -> Page:
    """Return the page on a spread."""
    metric, contrast = spread.metric.name, spread.contrast
    several = len(spread.measured) > 1
    titles = [shlex.join(measured.configuration.command) for measured in spread.measured]
    sections = [Section("plot", "Curves and final values", (_figure(spread),))]
    if contrast is not None:
        facts = Facts(tuple(contrast_rows(contrast, metric)))
        sections.append(Section("contrast", "The two configurations", (facts,)))
    for number, measured in enumerate(spread.measured):
        sections.append(_configuration(spread, measured, NAMES[number] if several else ""))
    notes = remark_sentences(spread)
    if notes:
        sections.append(Section("notes", "Notes", (Items(tuple(notes)),)))
    return Page(
        title=f"{metric} over seeds: {script_name(spread.measured[0].configuration.command)}",
        verdict=_verdict(spread),
        tone="plain" if contrast is None else _TONES.get(contrast.verdict, "unsure"),
        answer=_answer(spread),
        facts=Facts(
            tuple((f"configuration {NAMES[at]}" if several else "command", t) for at, t in enumerate(titles))
        ),
        sections=tuple(sections),
    )


def _verdict(spread: Spread) -> str:
    if spread.contrast is not None:
        return f"differ beyond seed noise: {spread.contrast.verdict}"
    estimate = spread.measured[0].estimate
    return "no finite value" if estimate is None else f"mean {figure(estimate.mean)}"


def _answer(spread: Spread) -> str:
    """Say what the seeds show, in one sentence."""
    if spread.contrast is not None:
        return (
            f"{compared_seeds(spread.contrast)}; {contrast_rows(spread.contrast, spread.metric.name)[0][1]}."
        )
    rows = dict(statistics_rows(spread.measured[0]))
    seeds = count(len(spread.measured[0].curves), "seed")
    return f"{spread.metric.name} of {seeds}: {rows.get('so', rows['mean'])}."


def _figure(spread: Spread) -> Figure:
    def draw(drawing: Any, width: float) -> None:
        if width == WIDE:
            curves, finals = drawing.subplots(1, 2, width_ratios=[3.2, 1])
        else:
            curves, finals = drawing.subplots(2, 1, height_ratios=[1.4, 1])
        draw_curves(curves, spread, _INKS)
        draw_finals(finals, spread, _INKS)

    wide, narrow = ("", "")
    if can_plot():
        wide, narrow = drawn(draw, "spread-wide", WIDE, 3.9), drawn(draw, "spread-narrow", NARROW, 5.4)
    caption = (
        "Left (on a phone above): a thin curve for each seed; the thick one is their median, with a band. "
        "Right (below): the final value of each seed; the diamond is the mean, the bar its 95 % interval."
    )
    alt = " ".join(f"{_name(spread, at)}{_range(measured)}" for at, measured in enumerate(spread.measured))
    title = f"{spread.metric.name} for each seed"
    return Figure("figure-spread", title, f"{alt} The tables below have the values.", caption, wide, narrow)


def _name(spread: Spread, number: int) -> str:
    return f"Configuration {NAMES[number]}: " if len(spread.measured) > 1 else ""


def _range(measured: Measured) -> str:
    text = count(len(measured.curves), "seed")
    estimate = measured.estimate
    if estimate is None:
        return f"{text}, no finite final value."
    return (
        f"{text}, final values from {figure(estimate.least)} to {figure(estimate.most)}, "
        f"mean {figure(estimate.mean)}."
    )


def _configuration(spread: Spread, measured: Measured, name: str) -> Section:
    configuration = measured.configuration
    blocks: list[Block] = [Facts((*run_rows(spread, configuration), *statistics_rows(measured)))]
    rows = tuple(
        (str(run.seed), figure(measured.finals[run.seed]), f"{run.seconds:.1f}", run.state or "none")
        for run in configuration.runs[:_MOST_ROWS]
        if not math.isnan(run.seconds)
    )
    head = ("seed", "final value", "seconds", "digest of the last state")
    left_out = max(0, len(configuration.runs) - len(rows))
    blocks.append(
        Table("Each seed", head, rows, frozenset({0, 1, 2}), folded=len(rows) > 12, left_out=left_out)
    )
    if configuration.failures:
        texts = (
            f"seed {each.seed}, status {each.status}: {failure_sentence(each)}"
            for each in configuration.failures
        )
        blocks.append(Items(tuple(texts)))
    title = f"Configuration {name}" if name else "The seeds"
    return Section(f"configuration-{name.lower() or 'a'}", title, tuple(blocks))
