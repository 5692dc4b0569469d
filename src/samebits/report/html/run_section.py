"""The sections on how runs were made: environment, switches, seeds, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits._text.printable import shortened
from samebits.recording.unread_words import unread_text
from samebits.report.environments import effect, fact_difference, unknown_texts
from samebits.report.html.document import Block, Facts, Items, Paragraph, Section, Table
from samebits.report.notes import gathered
from samebits.report.remedy import shown_site
from samebits.report.run_facts import NOT_SET, flat
from samebits.report.style import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from samebits.comparison.course import Seeding
    from samebits.comparison.environments import EnvironmentComparison
    from samebits.records.events import RunInfo
    from samebits.records.notes import Note

_MOST_NOTES = 40
_MOST_ROWS = 60
_LONGEST = 400
_APART = ("switches", "patch", "code", "data", "distributions", "packages", "libraries")


def notes_section(notes: Sequence[Note]) -> Section | None:
    """List the remarks on a verdict or a run."""
    texts = gathered(notes)
    if not texts:
        return None
    items = Items(tuple(texts[:_MOST_NOTES]), left_out=max(0, len(texts) - _MOST_NOTES))
    return Section("notes", "Notes", (items,))


def environments_section(
    infos: tuple[RunInfo, RunInfo], compared: EnvironmentComparison, first: str = "run 1"
) -> Section:
    """Show in what the environments of two runs differ, and what that can change.

    Args:
        infos: the facts of each run.
        compared: the differences.
        first: what the first run is called.
    """
    rows = tuple((fact_difference(each.fact), effect(each)) for each in compared.differences[:_MOST_ROWS])
    blocks: list[Block] = []
    if rows:
        left_out = len(compared.differences) - len(rows)
        blocks.append(
            Table("Differences that can change bits", ("difference", "can change"), rows, left_out=left_out)
        )
    else:
        blocks.append(Paragraph("Nothing that can change bits differs between the two environments."))
    if compared.others:
        texts = tuple(fact_difference(fact) for fact in compared.others[:_MOST_ROWS])
        left_out = len(compared.others) - len(texts)
        blocks += [Paragraph("These differ too, and change no bits by themselves:"), Items(texts, left_out)]
    unknown = unknown_texts(compared.unknown, (first, "the other"))
    if unknown:
        left_out = max(0, len(unknown) - _MOST_ROWS)
        blocks += [Paragraph("It is not known whether these are the same:")]
        blocks += [Items(tuple(unknown[:_MOST_ROWS]), left_out)]
    return Section(
        "environment", "Environments", (*blocks, *_environment(infos[0], f"Environment of {first}"))
    )


def environment_section(info: RunInfo) -> Section:
    """Show the environment of one run."""
    return Section("environment", "Environment", tuple(_environment(info, "Environment")))


def _environment(info: RunInfo, caption: str) -> Iterable[Block]:
    """Return the facts of an environment: the machine and the versions; packages apart."""
    facts = [
        (_name(name), shortened(flat(value), _LONGEST))
        for name, value in _flattened(info.environment)
        if value not in NOT_SET
    ]
    unread = unread_text(info.environment)
    if unread:
        facts.append(("data", unread))
    if not facts:
        return [Paragraph("The record holds nothing about the environment.")]
    left_out = max(0, len(facts) - _MOST_ROWS)
    tables = [Table(caption, ("fact", "value"), tuple(facts[:_MOST_ROWS]), folded=True, left_out=left_out)]
    packages = _table_of(info.environment.get("packages"))
    if packages:
        tables.append(
            Table(
                "Packages that were imported", ("package", "version"), packages[:_MOST_ROWS], folded=True,
                left_out=max(0, len(packages) - _MOST_ROWS),
            )
        )  # fmt: skip
    return tables


def _flattened(environment: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in environment.items():
        if name in _APART:
            continue
        if isinstance(value, dict):
            yield from ((f"{name} {inner}", each) for inner, each in value.items())
        else:
            yield name, value


def _name(name: str) -> str:
    return name.replace("_", " ")


def _table_of(value: object) -> tuple[tuple[str, str], ...]:
    """Return the entries of a table of a record, which may hold anything."""
    return tuple((str(key), flat(item)) for key, item in value.items()) if isinstance(value, dict) else ()


def switches_section(info: RunInfo) -> Section:
    """Show the switches that were set, and what control did."""
    results = info.control.get("results")
    blocks: list[Block] = []
    if isinstance(results, dict) and results:
        blocks += _controlled(results)
    else:
        blocks.append(Paragraph("The run was made without control: samebits set no switch and no seed."))
        switches = _table_of(info.environment.get("switches"))
        found = tuple(row for row in switches if row[1])
        if found:
            blocks.append(
                Table(
                    "Switches, as the run found them",
                    ("switch", "value"),
                    found[:_MOST_ROWS],
                    folded=True,
                    left_out=max(0, len(found) - _MOST_ROWS),
                )
            )
        if len(switches) > len(found):
            blocks.append(Paragraph(f"{len(switches) - len(found)} more switches were not set."))
    return Section("switches", "Switches", tuple(blocks))


def _controlled(results: Mapping[str, Any]) -> list[Block]:
    """Return the switches that control set, and how many it only watched."""
    rows = [each for each in results.values() if isinstance(each, dict)]
    done = [row for row in rows if row.get("state") != "held"]
    head = ("switch", "before", "in the run", "state")
    cells = tuple(
        (*(flat(row.get(key, "")) for key in ("name", "before", "now")), flat(row.get("state", "")))
        for row in done[:_MOST_ROWS]
    )
    text = f"{len(rows) - len(done)} more switches were watched and not changed."
    table = Table(
        "Switches that samebits controlled", head, cells, folded=True, left_out=max(0, len(done) - _MOST_ROWS)
    )
    return [table, Paragraph(text)]


def seeds_section(info: RunInfo, seedings: Sequence[Seeding], unlisted: int, folder: str) -> Section:
    """Show the seed that samebits gave, and the calls that seeded generators.

    Args:
        info: the facts of the run.
        seedings: the calls.
        unlisted: how many calls are not among these.
        folder: paths are shown relative to it.
    """
    blocks: list[Block] = []
    seed = info.control.get("seed")
    if seed is not None:
        blocks.append(Facts((("seed of samebits", flat(seed)),)))
    rows = tuple(
        (
            each.call,
            "" if each.site is None else shown_site(each.site, folder),
            str(each.step),
            str(each.times),
        )
        for each in seedings
    )
    if rows:
        head = ("call", "line", "first in step", "times")
        blocks.append(Table("Calls that seeded a generator", head, rows, numbers=frozenset({2, 3})))
        blocks += [Paragraph(f"{count(unlisted, 'more call')} seeded a generator.")] if unlisted else []
    elif seed is None:
        blocks.append(Paragraph("Nothing seeded a generator while the run was recorded.", "unsure"))
    return Section("seeds", "Seeds", tuple(blocks))
