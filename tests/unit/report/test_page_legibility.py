"""Pages can be read: short lists, whole numbers, labels that tell modules apart, nothing drawn over marks."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from report_builders import finding

from samebits._runtime.frames import Site
from samebits.comparison.course import Scalar
from samebits.comparison.op_timeline import OpPoint, OpState
from samebits.comparison.step_chart import ChartBuilder, RowKind
from samebits.recording.distance import Difference
from samebits.records.events import RunInfo
from samebits.records.kinds import EventKind
from samebits.report.html.document import Facts, Page, Paragraph, Section, Table
from samebits.report.html.labels import told_apart
from samebits.report.html.op_figures import op_drawings
from samebits.report.html.render import render
from samebits.report.html.scalar_figure import scalar_figure
from samebits.report.html.step_figures import step_drawings
from samebits.report.html.step_section import timeline_section
from samebits.report.origin_words import outputs_text


def rendered(text: str) -> str:
    """The page with one paragraph."""
    return render(Page("t", "v", "plain", "a", Facts(()), (Section("s", "s", (Paragraph(text),)),)))


def chart_of(modules: int, steps: int = 4):
    """All tensors of many modules differ from step 1 on; after the last step a value is read."""
    builder = ChartBuilder()
    names = [f"encoder.layers.{number}.attention" for number in range(modules)]
    for step in range(steps):
        builder.add_state(step, Counter(dict.fromkeys(names, step and 2)), Counter(dict.fromkeys(names, 2)))
    builder.add(steps, RowKind.VALUES, "", 1, 1)
    return builder.chart()


def info(steps: int, status: str = "finished") -> RunInfo:
    """The facts of a run with that many steps."""
    return RunInfo(("train.py",), "step", status, 0, steps=steps)


def paragraphs(section: Section) -> str:
    """Its texts."""
    return " ".join(block.text for block in section.blocks if isinstance(block, Paragraph))


@pytest.mark.parametrize("number", ["0.012555", "1,234", "-96.4%", "1e-05", "2.5e-08"])
def test_a_line_ends_within_no_number(number):
    assert number in rendered(f"from {number} to the end")


@pytest.mark.parametrize("name", ["a.b", "src/a", "deep-a.sbr", "x:y", "layers.0.weight"])
def test_a_line_may_end_within_a_name(name):
    assert "<wbr>" in rendered(name).partition("<main>")[2].partition('aria-labelledby="s"')[2]


def test_a_long_digest_may_be_broken():
    """So it needs no more room than a phone has."""
    assert "c0ffee00c0ffee00<wbr>c0ffee00c0ffee00" in rendered("c0ffee00" * 8)


def test_a_sentence_lists_few_modules():
    chart = chart_of(20)
    section = timeline_section(chart, (info(4), info(4)))
    figure = next(block for block in section.blocks if block.kind == "figure")

    for text in (paragraphs(section), figure.alt):
        assert "module encoder.layers.3.attention" in text
        assert "encoder.layers.9" not in text
        assert "and 15 more" in text


def test_runs_of_other_lengths_are_called_that():
    section = timeline_section(chart_of(2), (info(9), info(4)))

    assert "Run 1 has 9 steps and run 2 has 4: only what both have is compared." in paragraphs(section)
    assert "only what both have" not in paragraphs(timeline_section(chart_of(2), (info(4), info(4))))


def test_a_step_without_state_is_not_a_step_without_difference():
    """After the last step a script prints a value; its state is as different as before."""
    chart = chart_of(2)

    assert chart.totals == (0, 4, 4, 4, None)
    step_drawings(chart, "x", "tensors that differ", marks_first=True)


def test_labels_tell_modules_apart():
    names = [f"backbone.layers.{n}.{leaf}_projection_of_the_gate" for n in (0, 11) for leaf in ("in", "out")]

    labels = told_apart(names, 16)

    assert len(set(labels)) == 4
    assert all(len(label) <= 16 for label in labels)
    assert labels[0].startswith("…0.in")
    assert told_apart(["a.b", "a.c"], 16) == ["a.b", "a.c"]
    assert told_apart(["only_one_name_that_is_very_long"], 16) == ["only_on…ery_long"]


def test_nothing_is_drawn_over_the_distances():
    """The figure has one legend, outside of its axes."""
    difference = Difference(1, 1, 3, 0.5)
    points = tuple(
        OpPoint(at, 0, "aten::add", "", None, backward, OpState.DIFFERS, difference)
        for at, backward in enumerate((False, True))
    )

    for drawing in op_drawings(points, "ops"):
        assert drawing.count('id="ops-') > 1
        assert drawing.count("-legend_") == 1
        assert "backward" in drawing


def losses(*values: float) -> tuple[Scalar, ...]:
    """Losses of one line."""
    site = Site("/code/train.py", 9, "main")
    return tuple(Scalar(EventKind.LOSS, step, site, repr(value), value) for step, value in enumerate(values))


def test_many_losses_are_a_line_without_marks():
    few, many = scalar_figure(losses(*range(20))), scalar_figure(losses(*range(300)))

    assert few.wide.count("<use") - many.wide.count("<use") > 10
    assert "mark" not in many.caption


def test_losses_that_are_not_finite_are_counted():
    figure = scalar_figure(losses(3.0, 2.0, math.inf, math.nan, math.nan))

    assert "3 losses are not finite, the first in step 2" in figure.caption
    assert "3 losses are not finite, the first in step 2" in figure.alt
    assert "not finite" in figure.wide
    assert "not finite" not in scalar_figure(losses(3.0, 2.0)).caption


def test_what_came_out_has_no_number_for_a_name():
    loss = finding(kind=EventKind.LOSS, names=("0",), outputs=("f32[]",), difference=None)

    assert outputs_text(loss) == "f32[]"


def test_numbers_without_ulp_have_no_column_for_it():
    from samebits.comparison.difference import ElementPair
    from samebits.report.html.finding_section import _elements

    whole, floats = (_elements((ElementPair((0,), "1", "2", ulp),), 2, 1) for ulp in (None, 3))

    assert isinstance(whole, Table)
    assert whole.head == ("index", "run 1", "run 2")
    assert floats.head == ("index", "run 1", "run 2", "ULP")
