"""The ops that portable mode covers, as text and as JSON."""

from __future__ import annotations

import itertools
import json
import operator
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.portable.coverage import CoveredOp
    from samebits.report.style import Style

_HEADINGS = {
    "kernel": "A portable kernel",
    "exact": "torch's own, one IEEE operation or a choice",
    "move": "torch's own, moves or creates data",
    "integer": "torch's own, for integers and bools only",
}


def render_text(ops: Sequence[CoveredOp], style: Style) -> str:
    """List the ops by kind and section of the specification.

    Args:
        ops: what to show.
        style: width and colour.
    """
    lines = []
    for kind, heading in _HEADINGS.items():
        chosen = [op for op in ops if op.kind == kind]
        if not chosen:
            continue
        lines += ["", style.paint(f"{heading} ({len(chosen)})", "bold")]
        key = operator.attrgetter("section")
        for section, group in itertools.groupby(sorted(chosen, key=key), key):
            names = ", ".join(sorted(op.name for op in group))
            lines += style.wrap(f"{section}: {names}" if section else names, indent=2, hanging=4)
    return "\n".join([f"{len(ops)} ops", *lines, ""])


def render_json(ops: Sequence[CoveredOp]) -> str:
    """Return one object: `{"schema": 1, "ops": [{"name", "kind", "section"}]}`.

    Args:
        ops: what to show.
    """
    return json.dumps({"schema": 1, "ops": [asdict(op) for op in ops]}, indent=2) + "\n"
