"""The verdict over two runs that were made, with what their ends say of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.verification import fitness
from samebits.verification.child_records import children_of, with_children
from samebits.verification.tools import Counted

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.results import Comparison
    from samebits.recording.runner import Target
    from samebits.verification.series import Pair
    from samebits.verification.tools import Tools


def judged(pair: Pair, tools: Tools, target: Target, excused: Collection[str] = ()) -> tuple[Comparison, int]:
    """The verdict over two runs that left records, and how many tensors of the first were compared.

    Runs that took no step and gave no value, or ended with different statuses, are not judged identical.
    Whether they failed is not looked at.

    Args:
        pair: the runs.
        tools: compare them.
        target: the script.
        excused: names of state tensors that are left out.
    """
    with ExitStack() as stack:
        a = Counted(stack.enter_context(tools.open_record(pair.first.record)))
        b = stack.enter_context(tools.open_record(pair.second.record))
        comparison = tools.judge(a, b, excused=excused)
    records = pair.first.record, pair.second.record
    kinds = a.kinds | ({"step"} if any(children_of(record, tools) for record in records) else set())
    runs = (pair.first, pair.second)
    equal = "identical" in (comparison.verdict, comparison.state)
    doubt = fitness.doubt(runs, kinds, target) if equal else ""
    if doubt and comparison.verdict != "identical":
        comparison = replace(comparison, state="not_judged")
    elif doubt:
        comparison = replace(comparison, verdict="not_judged", state="not_judged", reason=doubt)
    return with_children(comparison, records, tools, excused), a.n_values
