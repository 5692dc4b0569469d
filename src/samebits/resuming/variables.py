"""Which of the user's variables a resumed run did not restore."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits.resuming.log import steps_before
from samebits.resuming.results import Omission

if TYPE_CHECKING:
    from samebits.resuming.align import WholeRun
    from samebits.resuming.log import Before

_NAMED = 4
_PARTS = re.compile(r"[.\[]")
_NUMBER = re.compile(r"-?\d+|True|False|-?\d*\.\d+(e-?\d+)?")


def wrong_variables(
    whole: WholeRun, due: Before, found: Before, initial: Before, contents: frozenset[str]
) -> list[Omission]:
    """Variables that both runs have, whose value in the resumed run tells that it was not restored.

    A number tells that where it is what it was at the start of the whole run, and a tensor, an array or a
    generator where it is not part of a batch. Others may differ for good reasons.

    Args:
        whole: the whole run.
        due: what it had before the step.
        found: what the resumed run has.
        initial: what the whole run had before its first step.
        contents: short digests of the tensors of the resumed run's batches.
    """
    theirs = found.variables
    wrong = {
        name: text for name, text in due.variables.items()
        if theirs.get(name, text) != text and theirs[name].rpartition(" ")[2] not in contents
    }  # fmt: skip
    if not wrong:
        return []
    lines: dict[str, str] = {}
    counts: dict[str, int] = {}
    origin = _seen_at(whole, {name: found.variables[name] for name in wrong}, due.step)
    for name, text in wrong.items():
        root = _PARTS.split(name, maxsplit=1)[0]
        line = _line(name, text, found.variables[name], initial.variables.get(name), origin.get(name))
        if line:
            counts[root] = counts.get(root, 0) + 1
            lines.setdefault(root, line)
    shown = [
        line + (f" (and {counts[root] - 1} more in `{root}`)" if counts[root] > 1 else "")
        for root, line in list(lines.items())[:_NAMED]
    ]
    more = f"; and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
    return [Omission("variables", "; ".join(shown) + more)] if shown else []


def _line(name: str, due: str, found: str, initial: str | None, step: int | None) -> str:
    if _NUMBER.fullmatch(due) and _NUMBER.fullmatch(found):
        return f"`{name}` is {found} as at the start, not {due}" if found == initial else ""
    kind = due.partition(" ")[0]
    if kind not in ("tensor", "array", "generator", "list", "tuple") or found.partition(" ")[0] != kind:
        return ""
    where = "" if step is None else f", it is as before step {step}"
    return f"{kind} `{name}` has other contents{where}"


def _seen_at(whole: WholeRun, wanted: dict[str, str], due: int) -> dict[str, int]:
    """The first step before which the whole run had a value in the same variable."""
    seen: dict[str, int] = {}
    for before in steps_before(whole.log):
        if before.step != due:
            for name, text in wanted.items():
                if before.variables.get(name) == text:
                    seen.setdefault(name, before.step)
    return seen
