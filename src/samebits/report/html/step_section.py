"""The sections on steps: what differs between two runs, what changed in one, with drawing and table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.report.html.document import Block, Figure, Paragraph, Section, Table
from samebits.report.html.step_figures import row_name, step_drawings
from samebits.report.plot import can_plot
from samebits.report.style import count, number

if TYPE_CHECKING:
    from samebits.comparison.step_chart import StepChart
    from samebits.records.events import RunInfo

_MOST_FIRSTS = 5
_DIGESTS = (
    "A record holds a digest of each tensor, not its values. So this shows how many tensors differ, not how "
    "far they are apart: `samebits run --values` keeps the values too."
)
_VALUES = "How far they are apart is shown below."


def timeline_section(chart: StepChart, infos: tuple[RunInfo, RunInfo], *, measured: bool = False) -> Section:
    """Show where two runs began to differ, and how the difference spread.

    Args:
        chart: what differs.
        infos: the facts of each run.
        measured: whether the page also shows how far they are apart.
    """
    blocks: list[Block] = [Paragraph(_spread(chart))]
    if chart.first is not None and chart.steps > 1:
        note = _VALUES if measured else _DIGESTS
        blocks.append(_figure(chart, "timeline", "What differs, step by step", "tensors that differ", note))
    blocks += [Paragraph(text, "unsure") for text in _ends(infos, chart)]
    if chart.first is not None:
        blocks.append(_table(chart, "Where each part differs first", "differ"))
    return Section("where", "Where it began and how it spread", tuple(blocks))


def course_section(chart: StepChart) -> Section:
    """Show which parts of the state each step changed."""
    note = "The first step has nothing before it to compare with. Gradients are not counted."
    blocks: list[Block] = [
        Paragraph(
            "For each step: the parameters, buffers and optimizer states whose bits are not those after the "
            "step before. A module that never changes is frozen, or gets no gradient."
        )
    ]
    if chart.steps > 1 and chart.first is not None:
        blocks.append(_figure(chart, "course", "What each step changed", "tensors that changed", note))
    blocks.append(_table(chart, "When each part changes first", "change"))
    return Section("course", "What each step changed", tuple(blocks))


def _figure(chart: StepChart, ident: str, title: str, counted: str, note: str) -> Figure:
    columns = ""
    if chart.width > 1:
        columns = f" Each column stands for {chart.width} steps and shows the largest share among them."
    joined = any(row.joined > 1 for row in chart.rows)
    rows = " There are many modules, so some share a row." if joined else ""
    caption = (
        f"Above: {counted}, of all that the state holds. Below: the share in each module, in four colours."
        f"{' The dashed line is the first difference.' if ident == 'timeline' else ''}"
        f"{columns}{rows} {note}"
    )
    wide, narrow = (
        step_drawings(chart, ident, counted, marks_first=ident == "timeline") if can_plot() else ("", "")
    )
    return Figure(f"figure-{ident}", title, _alt(chart, counted), caption, wide, narrow)


def _alt(chart: StepChart, counted: str) -> str:
    """Say in words what the drawing shows."""
    most = max(_known(chart), default=0)
    texts = [f"{number(chart.steps)} steps; at most {most} of {chart.held} {counted}."]
    if chart.first is not None:
        texts.append(f"The first is step {chart.first}: {_firsts(chart)}.")
    return " ".join([*texts, "The table below has the numbers."])


def _spread(chart: StepChart) -> str:
    """Say when the difference began, and when the most differed."""
    if chart.first is None:
        return f"In {count(chart.steps, 'step')} nothing differs."
    most = max(_known(chart), default=0)
    text = f"The first difference is in step {chart.first}: {_firsts(chart)}."
    if not most:
        return f"{text} No state tensor differs."
    column = chart.totals.index(most)
    step = column * chart.width
    when = (
        f"step {step}" if chart.width == 1 else f"steps {step} to {min(chart.steps, step + chart.width) - 1}"
    )
    return f"{text} The most state tensors differ first in {when}: {most} of {chart.held}."


def _known(chart: StepChart) -> list[int]:
    """Return the counts of the columns that have state."""
    return [total for total in chart.totals if total is not None]


def _firsts(chart: StepChart) -> str:
    """Name the rows with the first count; the table has all of them."""
    names = [row_name(row) for row in chart.rows if row.first == chart.first]
    more = f" and {len(names) - _MOST_FIRSTS} more" if len(names) > _MOST_FIRSTS else ""
    return ", ".join(names[:_MOST_FIRSTS]) + more


def _ends(infos: tuple[RunInfo, RunInfo], chart: StepChart) -> list[str]:
    """Say where a run is shorter, or was ended early, so that the growth of the difference cannot be seen."""
    first, second = (info.steps for info in infos)
    stopped = [number for number, info in enumerate(infos, 1) if info.status == "stopped"]
    if chart.first is None or first == second:
        return []
    if not stopped:
        text = f"Run 1 has {count(first, 'step')} and run 2 has {number(second)}"
        return [f"{text}: only what both have is compared."]
    ended_first = min(stopped, key=lambda each: infos[each - 1].steps)
    ended = f"Run {ended_first} was ended after {count(infos[ended_first - 1].steps, 'step')}"
    text = f"{ended}, so how the difference grows after that is not known."
    return [f"{text} `samebits verify --full` lets every run go on."]


def _table(chart: StepChart, caption: str, verb: str) -> Table:
    rows = tuple(
        (
            row_name(row),
            "never" if row.first is None else str(row.first),
            f"{number(row.most)} of {number(row.held)}",
        )
        for row in chart.rows
    )
    head = ("part", "first step", f"tensors or lines that {verb}, at most")
    return Table(caption, head, rows, numbers=frozenset({1, 2}), folded=len(rows) > 8)
