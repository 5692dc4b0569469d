"""The page on one run: what it did step by step, what it was given, where it ran."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from samebits.comparison.course import MOST_SCALARS
from samebits.records.kinds import EventKind
from samebits.report.html.document import Block, Facts, Page, Paragraph, Section, Table
from samebits.report.html.run_section import (
    environment_section,
    notes_section,
    seeds_section,
    switches_section,
)
from samebits.report.html.scalar_figure import scalar_figure
from samebits.report.html.step_section import course_section
from samebits.report.record import status_text
from samebits.report.remedy import shown_site
from samebits.report.style import count, number, shown_path
from samebits.report.vocabulary import script_name

if TYPE_CHECKING:
    from samebits._runtime.frames import Site
    from samebits.comparison.course import Course, Scalar
    from samebits.report.html.document import Tone

_MOST_LINES = 20
_MOST_SCALARS = 30
_TONES: dict[str, Tone] = {"finished": "plain", "stopped": "plain", "failed": "bad"}


def record_page(course: Course, path: str, folder: str) -> Page:
    """Return the page on one run.

    Args:
        course: the run.
        path: of its record.
        folder: the working folder; paths are shown relative to it.
    """
    info = course.info
    sections = [
        course_section(course.chart) if course.chart is not None else None,
        _values_section(course, folder),
        seeds_section(info, course.seedings, course.unlisted_seedings, folder),
        switches_section(info),
        notes_section(info.notes),
        environment_section(info),
    ]
    return Page(
        title=f"{script_name(info.command)}: one recorded run",
        verdict=info.status if info.status != "running" else "not closed",
        tone=_TONES.get(info.status, "unsure"),
        answer=f"{status_text(info)}; {count(course.steps, 'step')} recorded. A single run has no verdict: "
        "`samebits verify` or `samebits compare` gives one.",
        facts=Facts(tuple(_facts(course, path, folder))),
        sections=tuple(section for section in sections if section is not None),
    )


def _facts(course: Course, path: str, folder: str) -> list[tuple[str, str]]:
    info = course.info
    events = ", ".join(f"{kind} {number(count)}" for kind, count in sorted(course.counts.items()))
    return [
        ("command", shlex.join(info.command)),
        ("record", f"{shown_path(path, folder)} ({info.level} level)"),
        ("torch", info.torch or "never imported"),
        ("events", events or "none"),
    ]


def _values_section(course: Course, folder: str) -> Section:
    """Show the losses and the values read: their numbers where those are known, else how many there are."""
    blocks: list[Block] = []
    if course.scalars:
        blocks.append(Paragraph(_known(course)))
        figure = scalar_figure(course.scalars)
        blocks += [figure] if figure is not None else []
        blocks.append(_scalars(course.scalars, folder))
    elif course.losses or course.reads:
        blocks.append(
            Paragraph(
                "The record has a digest of each loss and of each value that was read, not the numbers. So "
                "there is no curve of them. `samebits run --values` keeps the losses. `samebits spread` "
                "makes new runs with several seeds, and plots a value that they print, log or read."
            )
        )
    rows = tuple(
        (kind, "" if site is None else shown_site(site, folder), number(times))
        for kind, lines in (("loss", course.losses), ("value read", course.reads))
        for site, times in lines[:_MOST_LINES]
    )
    if rows:
        left_out = len(course.losses) + len(course.reads) - len(rows)
        table = Table(
            "Lines that gave values", ("what", "line", "times"), rows, frozenset({2}), left_out=left_out
        )
        blocks.append(table)
    else:
        blocks.append(Paragraph("The run had no loss, and read no value out of torch."))
    return Section("values", "Losses and values read", tuple(blocks))


def _known(course: Course) -> str:
    losses = sum(times for _, times in course.losses)
    known = sum(scalar.kind == EventKind.LOSS for scalar in course.scalars)
    most = f" No more than {MOST_SCALARS} are looked up." if len(course.scalars) == MOST_SCALARS else ""
    return (
        "A record holds digests. A loss or a value that was read has the digest of the tensor that it came "
        "from, and here some losses or outputs of operations were kept. So the numbers of "
        f"{known} of {number(losses)} losses and of {len(course.scalars) - known} values read are "
        f"known.{most}"
    )


def _scalars(scalars: tuple[Scalar, ...], folder: str) -> Table:
    rows = tuple(
        (str(each.step), each.kind, each.value, _place(each.site, folder)) for each in scalars[:_MOST_SCALARS]
    )
    left_out = len(scalars) - len(rows)
    head = ("step", "what", "value", "line")
    return Table("Values that are known", head, rows, frozenset({0, 2}), folded=True, left_out=left_out)


def _place(site: Site | None, folder: str) -> str:
    return "" if site is None else shown_site(site, folder)
