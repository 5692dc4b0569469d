"""What differs at an origin, in words: its event, what went in, what came out, by how much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.comparison.replayed import Rerun
from samebits.records.events import RETURNED
from samebits.records.kinds import EventKind
from samebits.report.style import number
from samebits.report.vocabulary import KIND_WORDS

if TYPE_CHECKING:
    from samebits.comparison.results import Finding, Origin
    from samebits.recording.distance import Difference

_MOST_NAMES = 4
_UNNAMED = "0"  # the name of the only value of a call, which has a number
_OPS = (EventKind.OP, Rerun.REPLAY)


def headline(origin: Origin) -> str:
    """Name the event at which two runs part: its step, its operation and its module."""
    what = origin.op if origin.kind in _OPS else KIND_WORDS.get(origin.kind, origin.kind)
    if origin.kind == EventKind.RNG and origin.op == "seed":
        what = "a generator is seeded"
    elif origin.kind == EventKind.SAVE and origin.op == RETURNED:
        what = "what the function returned"
    elif origin.kind not in _OPS and origin.op:
        what = f"{what} ({origin.op})"
    parts = [f"step {origin.step}"] if origin.step is not None else []
    parts.append(str(what) + (f" in module {origin.module}" if origin.module else ""))
    return printable(", ".join(parts))


def inputs_text(origin: Origin) -> str:
    """Describe what went into it, and say whether that was the same in both runs."""
    what = ", ".join(origin.inputs)
    if origin.inputs_equal is None:
        return what
    if origin.kind == Rerun.REPLAY:
        return f"{what}: the same bits each time" if what else "the same bits each time"
    verdict = "the same bits in both runs" if origin.inputs_equal else "different in the two runs"
    return f"{what}: {verdict}" if what else verdict


def outputs_text(finding: Finding) -> str:
    """Describe what came out, and how far it is apart."""
    what = _named_outputs(finding.origin)
    difference = finding.origin.difference
    if difference is None:
        return what
    return f"{what}: {amount_text(difference)}" if what else amount_text(difference)


def _named_outputs(origin: Origin) -> str:
    """Return `fc1.weight f32[3], fc1.bias f32[1] and 2 more`."""
    names, outputs = origin.names, origin.outputs
    if len(names) == len(outputs) and names != (_UNNAMED,):
        parts = [f"{name} {output}".strip() for name, output in zip(names, outputs, strict=True)]
    else:
        parts = list(outputs)
    more = f" and {len(parts) - _MOST_NAMES} more" if len(parts) > _MOST_NAMES else ""
    return ", ".join(parts[:_MOST_NAMES]) + more


def amount_text(difference: Difference) -> str:
    """Say how many elements differ, and by how much."""
    of = f"{number(difference.total)} elements"
    if difference.compared is not None:
        of = f"{number(difference.compared)} elements that were kept, of {number(difference.total)},"
    text = f"{number(difference.elements)} of {of} differ"
    text = "its one element differs" if difference.total == 1 else text
    if difference.max_ulp == 0:  # nothing else is 0 apart and not the same number
        return f"{text}, only in the sign of zero"
    if difference.max_abs is not None and math.isnan(difference.max_abs):
        text += ", some of them NaN in one run"
    elif difference.max_abs is not None:
        text += f", by up to {difference.max_abs:.4g}"
    if difference.max_ulp is not None:
        text += f" ({number(difference.max_ulp)} ULP)"
    return text


def values_text(difference: Difference, other: int) -> str:
    """Give the first element that differs, in run 1 and in another one.

    Args:
        difference: of the values.
        other: number of the other run; 0 for an operation that was executed again in one run.
    """
    first, second = difference.values or ("", "")
    index = difference.first_index
    where = f"first at {list(index)}: " if index else ""
    return f"{where}{first} in run 1, {second} in run {other}" if other else f"{where}{first}, then {second}"
