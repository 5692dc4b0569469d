"""The page on what switches cost: the time that each adds to a step."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from samebits._text.masking import Masker
from samebits.commands.cost import AGAIN, OFF, ON
from samebits.report.cost import figures, how_measured, left_out_sentences, percent
from samebits.report.html.document import Block, Facts, Figure, Items, Page, Paragraph, Section, Table
from samebits.report.html.svg import NARROW, WIDE, Ink, drawn
from samebits.report.plot import can_plot
from samebits.report.vocabulary import script_name

if TYPE_CHECKING:
    from samebits.commands.cost import Cost, CostReport

_MOST_NAME = 26


def cost_page(report: CostReport) -> Page:
    """Return the page on the cost of switches."""
    target = report.request.target
    name = (target.script,) if target.script is not None else ("-m", str(target.module))
    blocks: list[Block] = [_figure(report), _table(report), Paragraph(how_measured(report))]
    left_out = left_out_sentences(report)
    sections = [Section("costs", "What each switch adds to a step", tuple(blocks))]
    if left_out:
        sections.append(Section("left-out", "Not measured", (Items(tuple(left_out)),)))
    if report.interrupted:
        text = f"The measurement was interrupted after {report.request.rounds} complete rounds."
        sections.insert(0, Section("interrupted", "Interrupted", (Paragraph(text, "unsure"),)))
    return Page(
        title=f"{script_name(name)}: what determinism switches cost",
        verdict=_verdict(report),
        tone="plain",
        answer=_answer(report),
        facts=Facts(
            (
                ("command", shlex.join(Masker((*name, *target.arguments)).command)),
                ("measured", f"{report.steps} steps of each variant, in {report.request.rounds} rounds"),
            )
        ),
        sections=tuple(sections),
    )


def _on(report: CostReport) -> Cost | None:
    return next((cost for cost in report.costs if cost.variant.name == ON and not cost.failure), None)


def _verdict(report: CostReport) -> str:
    everything = _on(report)
    return "not measured" if everything is None else f"{percent(everything.ratio)} for all switches"


def _answer(report: CostReport) -> str:
    everything = _on(report)
    if everything is None:
        return "The variant with all switches on could not be measured."
    low, high = everything.spread
    text = (
        f"With all switches on, the time of a step changes by {percent(everything.ratio)} ({percent(low)} to "
        f"{percent(high)} over the rounds). Two equal variants differ by up to {100 * report.noise:.1f}% here"
    )
    return f"{text}." if report.is_clear(everything) else f"{text}, so this cannot be told from noise."


def _figure(report: CostReport) -> Figure:
    shown = [cost for cost in report.costs if cost.variant.name != OFF and not cost.failure]
    height = 0.9 + 0.28 * len(shown)

    def draw(drawing: Any, width: float) -> None:
        axes = drawing.subplots()
        noise = 100 * report.noise
        axes.axvspan(-noise, noise, color=Ink.MUTED.value, alpha=0.18, linewidth=0, label="noise")
        axes.axvline(0, color=Ink.MUTED.value, linewidth=0.8)
        for number, cost in enumerate(shown):
            _draw_cost(axes, cost, number)
        longest = _MOST_NAME if width == WIDE else _MOST_NAME // 2
        names = [cost.variant.name for cost in shown]
        axes.set_yticks(range(len(shown)), [_shortened(name, longest) for name in names], fontsize=8)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("% of the time of a step")
        axes.legend(loc="best")

    wide, narrow = ("", "")
    if can_plot() and shown:
        wide, narrow = drawn(draw, "cost-wide", WIDE, height), drawn(draw, "cost-narrow", NARROW, height)
    caption = (
        "Dot: median over the rounds; bar: the smallest and the largest. The grey band is the difference "
        f"between two equal variants (`{AGAIN}`). A bar that reaches into it cannot be told from noise."
    )
    alt = (
        "; ".join(f"{cost.variant.name} {percent(cost.ratio)}" for cost in shown) or "No variant was measured"
    )
    return Figure("figure-cost", "Cost of each switch", f"{alt}.", caption, wide, narrow)


def _draw_cost(axes: Any, cost: Cost, number: int) -> None:
    low, high = (100 * (ratio - 1) for ratio in cost.spread)
    middle = 100 * (cost.ratio - 1)
    colour = (Ink.SECOND if cost.variant.name == ON else Ink.FIRST).value
    axes.plot([low, high], [number, number], color=colour, linewidth=1.6)
    axes.plot([middle], [number], marker="o", markersize=5, color=colour)


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _table(report: CostReport) -> Table:
    rows = tuple(
        (
            cost.variant.name,
            *figures(cost),
            f"not measured: {cost.failure}" if cost.failure else cost.variant.why,
        )
        for cost in report.costs
    )
    head = ("variant", "ms/step", "cost", "least to greatest", "remark")
    return Table("Cost of each variant", head, rows, numbers=frozenset({1, 2, 3}))
