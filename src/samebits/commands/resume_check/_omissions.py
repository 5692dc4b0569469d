"""State and variables that a resumed run did not restore."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from samebits.commands.resume_check._alignment import state_before
from samebits.commands.resume_check._data_position import generator_name
from samebits.commands.resume_check._state_log import before_step, optimizer_steps, steps_before
from samebits.commands.resume_check.runs import Omission
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
    whole: WholeRun, due: Before, resumed: Before, initial: Before, contents: frozenset[str]
) -> list[Omission]:
    """Return variables of both runs whose value shows that they were not restored.

    A number shows it if it is as at the start of the whole run; a tensor, an array or a generator if it is
    not part of a batch. Others may differ for good reasons.

    Args:
        whole: the whole run.
        due: its state before the step.
        resumed: the state of the resumed run.
        initial: the state of the whole run before its first step.
        contents: short digests of the tensors of the resumed run's batches.
    """
    theirs = resumed.variables
    wrong = {
        name: text for name, text in due.variables.items()
        if theirs.get(name, text) != text and theirs[name].rpartition(" ")[2] not in contents
    }  # fmt: skip
    if not wrong:
        return []
    lines: dict[str, str] = {}
    counts: dict[str, int] = {}
    origin = _seen_at(whole, {name: theirs[name] for name in wrong}, due.step)
    for name, text in wrong.items():
        root = _PARTS.split(name, maxsplit=1)[0]
        line = _line(name, text, theirs[name], initial.variables.get(name), origin.get(name))
        if line:
            counts[root] = counts.get(root, 0) + 1
            lines.setdefault(root, line)
    shown = [
        line + (f" (and {counts[root] - 1} more in `{root}`)" if counts[root] > 1 else "")
        for root, line in list(lines.items())[:_NAMED_VARIABLES]
    ]
    more = f"; and {len(lines) - _NAMED_VARIABLES} more" if len(lines) > _NAMED_VARIABLES else ""
    return [Omission("variables", "; ".join(shown) + more)] if shown else []


def _line(name: str, due: str, value: str, initial: str | None, step: int | None) -> str:
    if _NUMBER.fullmatch(due) and _NUMBER.fullmatch(value):
        return f"`{name}` is {value} as at the start, not {due}" if value == initial else ""
    kind = due.partition(" ")[0]
    if kind not in ("tensor", "array", "generator", "list", "tuple") or value.partition(" ")[0] != kind:
        return ""
    where = "" if step is None else f": it is as before step {step}"
    return f"{kind} `{name}` has other contents{where}"


def _seen_at(whole: WholeRun, wanted: dict[str, str], due: int) -> dict[str, int]:
    """Return the first step before which the whole run had a value in the same variable."""
    seen: dict[str, int] = {}
    for before in steps_before(whole.log):
        if before.step != due:
            for name, text in wanted.items():
                if before.variables.get(name) == text:
                    seen.setdefault(name, before.step)
    return seen


_NAMED = 3
# Fields of schedules and scalers that add nothing, or that differ after loading though all is well.
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
        start: its step in the whole run.
        due: the state of the whole run there.
        resumed: the state of the resumed run there.
        initial: the state before the first step of the whole run.
    """

    start: Start
    due: Before
    resumed: Before
    initial: Before


def boundary(whole: WholeRun, start: Start, resumed: Before) -> Boundary | None:
    """Return the point, with the state of the whole run there; None where that is not known."""
    if start.step is None:
        return None
    due, initial = before_step(whole.log, start.step), before_step(whole.log, 0)
    return None if due is None or initial is None else Boundary(start, due, resumed, initial)


def hidden(whole: WholeRun, record: Record, at: Boundary) -> list[Omission]:
    """Return what was not restored though the bits were the same: it may show in a longer run."""
    state = state_before(whole, record, at.due.step)
    return [*_buffers(state, at), *_optimizer(state, at), *_settings(at)]


def omissions(whole: WholeRun, record: Record, at: Boundary, contents: frozenset[str]) -> list[Omission]:
    """Return everything that was not restored, except the batch.

    Args:
        whole: the whole run.
        record: its record.
        at: the point at which the resumed run begins.
        contents: short digests of the tensors in the resumed run's first batches.
    """
    state = state_before(whole, record, at.due.step)
    state_omissions = [
        *_parameters(at),
        *_buffers(state, at),
        *_optimizer(state, at),
        *_settings(at),
        *_generators(whole, record, at),
    ]
    return [*state_omissions, *wrong_variables(whole, at.due, at.resumed, at.initial, contents)]


def _parameters(at: Boundary) -> list[Omission]:
    missing, total = at.start.missing, at.start.total
    if not missing:
        return []
    fresh = _are_initial(at, Role.PARAM, missing)
    text = (
        f"{len(missing)} of {total} parameters differ from those before step {at.due.step}: {_list(missing)}"
    )
    return [Omission("parameters", text + fresh)]


def _buffers(state: dict[tuple[Role, str], str], at: Boundary) -> list[Omission]:
    """Return the buffers that were not restored."""
    if not at.due.buffers or at.due.buffers == at.resumed.buffers:
        return []
    due, resumed = _of_role(state, at, Role.BUFFER)
    wrong = [name for name in due if name in resumed and resumed[name] != due[name]]
    if not wrong:
        return []
    text = f"{len(wrong)} of {len(due)} buffers differ from those before step {at.due.step}: {_list(wrong)}"
    return [Omission("buffers", text + _are_initial(at, Role.BUFFER, wrong))]


def _optimizer(state: dict[tuple[Role, str], str], at: Boundary) -> list[Omission]:
    """Return the optimizer state that was not restored."""
    if at.due.optimizer == at.resumed.optimizer:
        return []
    due, resumed = _of_role(state, at, Role.OPTIMIZER)
    absent = [name for name in due if name not in resumed]
    other = [name for name in due if name in resumed and resumed[name] != due[name]]
    if absent and not resumed:
        text = f"the optimizer's state is not restored: it has none, where {_list(absent)} were"
        return [Omission("optimizer", text)]
    if not absent and not other:
        return []
    text = f"{len(absent) + len(other)} of {len(due)} values of the optimizer's state are not restored"
    return [Omission("optimizer", f"{text}: {_list([*absent, *other])}")]


def _of_role(
    state: dict[tuple[Role, str], str], at: Boundary, role: Role
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digests by name in the whole run's state and in the resumed run's."""
    due = {name: digest for (kind, name), digest in state.items() if kind == role}
    return due, {name: digest for kind, name, digest in at.resumed.tensors if kind == role}


def _are_initial(at: Boundary, role: Role, names: Iterable[str]) -> str:
    initial = {name: digest for kind, name, digest in at.initial.tensors if kind == role}
    resumed = {name: digest for kind, name, digest in at.resumed.tensors if kind == role}
    return " (as at the start)" if all(resumed.get(n) == initial.get(n) for n in names) else ""


def _settings(at: Boundary) -> list[Omission]:
    due, resumed = at.due.settings, at.resumed.settings
    wrong = [
        name for name, text in due.items()
        if name in resumed and resumed[name] != text and not name.endswith(_NO_MATTER)
    ]  # fmt: skip
    result = []
    for what in ("hyperparameters", "schedule", "scaler"):
        names = [name for name in wrong if _kind(name) == what]
        if names:
            shown = [f"{name} is {resumed[name]}, not {due[name]}" for name in names[:_NAMED]]
            more = f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            result.append(Omission(what, "; ".join(shown) + more))
    return result


def _kind(name: str) -> str:
    if " group " in name:
        return "hyperparameters"
    return "scaler" if name.startswith("GradScaler") else "schedule"


def _generators(whole: WholeRun, record: Record, at: Boundary) -> list[Omission]:
    wrong = _wrong_generators(at)
    if not wrong:
        return []
    used, seen = _history(whole, at, wrong)
    ends = _at_the_end(record, at.due.step)
    groups: dict[str, list[str]] = {}
    for name in at.due.generators:
        if name in wrong & used:
            groups.setdefault(_where(name, at, ends, seen), []).append(generator_name(name))
    return [Omission("generator", f"{', '.join(names)}: {where}") for where, names in groups.items()]


def _wrong_generators(at: Boundary) -> set[str]:
    """Return the generators whose state is not that of the whole run."""
    resumed = at.resumed.generators
    return {name for name, state in at.due.generators.items() if resumed.get(name, state) != state}


def _where(name: str, at: Boundary, ends: dict[str, str], seen: dict[str, str]) -> str:
    if ends.get(name) == at.resumed.generators[name]:
        return (
            f"as at the end of step {at.due.step - 1}, but the whole run had drawn since: it was restored too"
            " late (after the batch was drawn), or those draws are missing"
        )
    if name in seen:
        return f"not restored{seen[name]}"
    return "not restored, or drawn from since: its state matches no step of the whole run"


def _at_the_end(record: Record, step: int) -> dict[str, str]:
    """Return the states of the generators at the end of the step before one; empty before the first."""
    before = next(islice(optimizer_steps(record), step - 1, None), None) if step else None
    return {} if before is None else {name: state[:8].hex() for name, state in before.generators.items()}


def idle_generators(whole: WholeRun, at: Boundary) -> list[str]:
    """Return generators that were not restored, but that the whole run never drew from after that step."""
    wrong = _wrong_generators(at)
    used, _ = _history(whole, at, wrong) if wrong else (set(), {})
    return [name for name in at.due.generators if name in wrong - used]


def _history(whole: WholeRun, at: Boundary, wrong: set[str]) -> tuple[set[str], dict[str, str]]:
    """Return generators drawn from after that step, and the steps with the resumed run's states."""
    used: set[str] = set()
    seen: dict[str, str] = {}
    for begun in whole.lines.passes:
        for name in wrong:
            state = begun.generators.get(name)
            if begun.step == 0 and state == at.resumed.generators[name]:
                seen.setdefault(name, ": as at the start of the script")
    for before in steps_before(whole.log):
        for name in wrong:
            state = before.generators.get(name)
            if state == at.resumed.generators[name] and before.step != at.due.step:
                seen.setdefault(name, f": as before step {before.step}")
            if before.step > at.due.step and state != at.due.generators[name]:
                used.add(name)
    return used, seen


def _list(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
