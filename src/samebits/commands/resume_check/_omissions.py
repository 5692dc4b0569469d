"""State and variables that a resumed run did not restore."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from samebits.commands.resume_check._alignment import state_before
from samebits.commands.resume_check._data_position import generator_name
from samebits.commands.resume_check._state_log import before_step, optimizer_steps, steps_before
from samebits.commands.resume_check.outcome import Omission
from samebits.records.kinds import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.resume_check._alignment import Start, WholeRun
    from samebits.commands.resume_check._state_log import Before
    from samebits.comparison.lookup import Record

_NAMED_VARIABLES = 4
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
        for root, line in list(lines.items())[:_NAMED_VARIABLES]
    ]
    more = f"; and {len(lines) - _NAMED_VARIABLES} more" if len(lines) > _NAMED_VARIABLES else ""
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


_NAMED = 3
# Of schedules and scalers, what says no more than the rest, or is another after loading though all is well.
_NO_MATTER = (
    "step_count",
    "get_lr_called_within_step",
    "is_initial",
    "init_scale",
    "init_growth_tracker",
    "verbose",
)


@dataclass(frozen=True)
class Boundary:
    """The point at which a resumed run begins.

    Args:
        start: where that is in the whole run.
        due: what was there in the whole run.
        found: what is there in the resumed run.
        initial: what was there before the first step of the whole run.
    """

    start: Start
    due: Before
    found: Before
    initial: Before


def boundary(whole: WholeRun, start: Start, found: Before) -> Boundary | None:
    """The point, with the state of the whole run there; None where that is not known."""
    if start.step is None:
        return None
    due, initial = before_step(whole.log, start.step), before_step(whole.log, 0)
    return None if due is None or initial is None else Boundary(start, due, found, initial)


def hidden(whole: WholeRun, record: Record, at: Boundary) -> list[Omission]:
    """What was not restored though the run gave the same bits: it may show in a longer run."""
    state = state_before(whole, record, at.due.step)
    return [*_tensors(state, at, Role.BUFFER), *_tensors(state, at, Role.OPTIMIZER), *_settings(at)]


def omissions(whole: WholeRun, record: Record, at: Boundary, contents: frozenset[str]) -> list[Omission]:
    """All that was not restored, the batch aside.

    Args:
        whole: the whole run.
        record: its record.
        at: where the resumed run begins.
        contents: short digests of the tensors in the resumed run's first batches.
    """
    state = state_before(whole, record, at.due.step)
    found = [
        *_parameters(at),
        *_tensors(state, at, Role.BUFFER),
        *_tensors(state, at, Role.OPTIMIZER),
        *_settings(at),
        *_generators(whole, record, at),
    ]
    return [*found, *wrong_variables(whole, at.due, at.found, at.initial, contents)]


def _parameters(at: Boundary) -> list[Omission]:
    missing, total = at.start.missing, at.start.total
    if not missing:
        return []
    fresh = _are_initial(at, Role.PARAM, missing)
    text = f"{len(missing)} of {total} parameters are not those before step {at.due.step}: {_list(missing)}"
    return [Omission("parameters", text + fresh)]


def _tensors(state: dict[tuple[Role, str], str], at: Boundary, role: Role) -> list[Omission]:
    """Buffers, or optimizer state."""
    if (at.due.buffers, at.found.buffers)[role == Role.OPTIMIZER] == "" and role == Role.BUFFER:
        return []
    same = (
        at.due.buffers == at.found.buffers if role == Role.BUFFER else at.due.optimizer == at.found.optimizer
    )
    if same:
        return []
    due = {name: digest for (kind, name), digest in state.items() if kind == role}
    found = {name: digest for kind, name, digest in at.found.tensors if kind == role}
    absent = [name for name in due if name not in found]
    other = [name for name in due if name in found and found[name] != due[name]]
    if role == Role.BUFFER:
        wrong = other
        text = f"{len(other)} of {len(due)} buffers are not those before step {at.due.step}: {_list(other)}"
        return [Omission("buffers", text + _are_initial(at, role, other))] if wrong else []
    if absent and not found:
        return [
            Omission(
                "optimizer", f"the optimizer's state is not restored: it has none, where {_list(absent)} were"
            )
        ]
    if absent or other:
        text = f"{len(absent) + len(other)} of {len(due)} values of the optimizer's state are not restored"
        return [Omission("optimizer", f"{text}: {_list([*absent, *other])}")]
    return []


def _are_initial(at: Boundary, role: Role, names: Iterable[str]) -> str:
    initial = {name: digest for kind, name, digest in at.initial.tensors if kind == role}
    found = {name: digest for kind, name, digest in at.found.tensors if kind == role}
    return " (as at the start)" if all(found.get(n) == initial.get(n) for n in names) else ""


def _settings(at: Boundary) -> list[Omission]:
    due, found = at.due.settings, at.found.settings
    wrong = [
        name for name, text in due.items()
        if name in found and found[name] != text and not name.endswith(_NO_MATTER)
    ]  # fmt: skip
    result = []
    for what in ("hyperparameters", "schedule", "scaler"):
        names = [name for name in wrong if _kind(name) == what]
        if names:
            shown = [f"{name} is {found[name]}, not {due[name]}" for name in names[:_NAMED]]
            more = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            result.append(Omission(what, "; ".join(shown) + more))
    return result


def _kind(name: str) -> str:
    if " group " in name:
        return "hyperparameters"
    return "scaler" if name.startswith("GradScaler") else "schedule"


def _generators(whole: WholeRun, record: Record, at: Boundary) -> list[Omission]:
    wrong = {
        name for name, state in at.due.generators.items() if at.found.generators.get(name, state) != state
    }
    if not wrong:
        return []
    used, seen = _history(whole, at, wrong)
    ends = _at_the_end(record, at.due.step)
    groups: dict[str, list[str]] = {}
    for name in at.due.generators:
        if name in wrong & used:
            groups.setdefault(_where(name, at, ends, seen), []).append(generator_name(name))
    return [Omission("generator", f"{', '.join(names)}: {where}") for where, names in groups.items()]


def _where(name: str, at: Boundary, ends: dict[str, str], seen: dict[str, str]) -> str:
    if ends.get(name) == at.found.generators[name]:
        return (
            f"as at the end of step {at.due.step - 1}, where the whole run had drawn since: restored too late"
            " (after the batch was drawn), or those draws are missing"
        )
    if name in seen:
        return f"not restored{seen[name]}"
    return "not restored, or drawn from since: where it stands is known from no step of the whole run"


def _at_the_end(record: Record, step: int) -> dict[str, str]:
    """The states of the generators at the end of the step before one; empty before the first."""
    before = next(islice(optimizer_steps(record), step - 1, None), None) if step else None
    return {} if before is None else {name: state[:8].hex() for name, state in before.generators.items()}


def idle_generators(whole: WholeRun, at: Boundary) -> list[str]:
    """Generators that were not restored and that the whole run never drew from after that step."""
    wrong = {
        name for name, state in at.due.generators.items() if at.found.generators.get(name, state) != state
    }
    used, _ = _history(whole, at, wrong) if wrong else (set(), {})
    return [name for name in at.due.generators if name in wrong - used]


def _history(whole: WholeRun, at: Boundary, wrong: set[str]) -> tuple[set[str], dict[str, str]]:
    """Which generators are drawn from after that step, and at which step they stood as in the resumed run."""
    used: set[str] = set()
    seen: dict[str, str] = {}
    for found in whole.lines.passes:
        for name in wrong:
            state = found.generators.get(name)
            if found.step == 0 and state == at.found.generators[name]:
                seen.setdefault(name, ": as at the start of the script")
    for before in steps_before(whole.log):
        for name in wrong:
            state = before.generators.get(name)
            if state == at.found.generators[name] and before.step != at.due.step:
                seen.setdefault(name, f": as before step {before.step}")
            if before.step > at.due.step and state != at.due.generators[name]:
                used.add(name)
    return used, seen


def _list(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
