"""The verdict over a script and the processes that it started."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.recording.children import SUFFIX, children_folder
from samebits.recording.farewell import read_info

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from samebits.comparison.results import Comparison
    from samebits.verification.results import ScriptRun
    from samebits.verification.tools import Tools

_POOL = "pool-"


def children_of(record: str, tools: Tools) -> dict[str, Path]:
    """The records of the children that trained, by name; those of their children too."""
    found: dict[str, Path] = {}
    for path in sorted(children_folder(record).glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        if _trains(path, tools):
            found[name] = path
        found |= {f"{name}/{inner}": place for inner, place in children_of(str(path), tools).items()}
    return found


def with_children(
    comparison: Comparison, records: tuple[str, str], tools: Tools, excused: Collection[str] = ()
) -> tuple[Comparison, str]:
    """The verdict over two runs and their children, and the name of the child that differs.

    Args:
        comparison: of the two processes that started them.
        records: of these processes.
        tools: compare them.
        excused: names of state tensors that are left out.
    """
    first, second = (children_of(record, tools) for record in records)
    if not first and not second:
        return comparison, ""
    if comparison.verdict != "identical":
        return comparison, ""
    steps, notes = comparison.steps, []
    for name in sorted({*first, *second}):
        if name not in first or name not in second:
            which = "second" if name in first else "first"
            reason = f"the child process {name} trained, and there is no record of it in the {which} run"
            return replace(comparison, verdict="not_judged", state="not_judged", reason=reason), ""
        with tools.open_record(str(first[name])) as a, tools.open_record(str(second[name])) as b:
            found = tools.judge(a, b, excused=excused)
        if found.verdict == "different" and _POOL in name:
            reason = (
                f"the child process {name} of a pool did other work in each run: which process of a pool "
                "takes which task is chance, so the runs cannot be compared"
            )
            return replace(comparison, verdict="not_judged", state="not_judged", reason=reason), ""
        if found.verdict != "identical":
            return replace(found, reason=f"in the child process {name}: {found.reason}"), name
        steps += found.steps
        notes.append(f"the child process {name} was compared too: {found.steps} steps")
    return replace(comparison, steps=steps, notes=(*comparison.notes, *notes)), ""


def differing_child(records: tuple[str, str], tools: Tools) -> str:
    """The name of the child that differs in two runs whose own records do not; empty if there is none."""
    with tools.open_record(records[0]) as a, tools.open_record(records[1]) as b:
        own = tools.judge(a, b)
    if own.verdict == "different":
        return ""
    return with_children(replace(own, verdict="identical"), records, tools)[1]


def focused(run: ScriptRun, child: str) -> ScriptRun:
    """A run, with the record of one of its children in the place of its own."""
    record = run.record
    for name in child.split("/"):
        record = str(children_folder(record) / f"{name}{SUFFIX}")
    return replace(run, record=record, info=read_info(children_folder(record).with_suffix(SUFFIX)))


def _trains(path: Path, tools: Tools) -> bool:
    try:
        with tools.open_record(str(path)) as record:
            return next(record.events(("step", "grad")), None) is not None
    except SamebitsError:
        return False
