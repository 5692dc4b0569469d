"""State and variables that a resumed run did not restore."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from samebits.commands.resume_check._alignment import state_before
from samebits.commands.resume_check._state_log import before_step, optimizer_steps, steps_before
from samebits.commands.resume_facts import Fact, FactCode, Omission, Part
from samebits.records.kinds import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.resume_check._alignment import Start, WholeRun
    from samebits.commands.resume_check._state_log import Before
    from samebits.comparison.lookup import Record

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
    facts: dict[str, Fact] = {}
    counts: dict[str, int] = {}
    origin = _seen_at(whole, {name: theirs[name] for name in wrong}, due.step)
    for name, text in wrong.items():
        root = _PARTS.split(name, maxsplit=1)[0]
        fact = _variable(name, text, theirs[name], initial.variables.get(name), origin.get(name))
        if fact is not None:
            counts[root] = counts.get(root, 0) + 1
            facts.setdefault(root, fact)
    variables = [(root, fact, counts[root] - 1) for root, fact in facts.items()]
    return [Omission(Part.VARIABLES, Fact.of(FactCode.VARIABLES, *variables))] if variables else []


def _variable(name: str, due: str, value: str, initial: str | None, step: int | None) -> Fact | None:
    """Return what shows that a variable was not restored; None if nothing does."""
    if _NUMBER.fullmatch(due) and _NUMBER.fullmatch(value):
        return Fact.of(FactCode.VALUE_AT_START, name, value, due) if value == initial else None
    kind = due.partition(" ")[0]
    if kind not in ("tensor", "array", "generator", "list", "tuple") or value.partition(" ")[0] != kind:
        return None
    return Fact.of(FactCode.OTHER_CONTENTS, kind, name, step)


def _seen_at(whole: WholeRun, wanted: dict[str, str], due: int) -> dict[str, int]:
    """Return the first step before which the whole run had a value in the same variable."""
    seen: dict[str, int] = {}
    for before in steps_before(whole.log):
        if before.step != due:
            for name, text in wanted.items():
                if before.variables.get(name) == text:
                    seen.setdefault(name, before.step)
    return seen


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
    is_initial = _are_initial(at, Role.PARAM, missing)
    fact = Fact.of(FactCode.PARAMETERS_DIFFER, missing, total, at.due.step, is_initial)
    return [Omission(Part.PARAMETERS, fact)]


def _buffers(state: dict[tuple[Role, str], str], at: Boundary) -> list[Omission]:
    """Return the buffers that were not restored."""
    if not at.due.buffers or at.due.buffers == at.resumed.buffers:
        return []
    due, resumed = _of_role(state, at, Role.BUFFER)
    wrong = tuple(name for name in due if name in resumed and resumed[name] != due[name])
    if not wrong:
        return []
    is_initial = _are_initial(at, Role.BUFFER, wrong)
    fact = Fact.of(FactCode.BUFFERS_DIFFER, wrong, len(due), at.due.step, is_initial)
    return [Omission(Part.BUFFERS, fact)]


def _optimizer(state: dict[tuple[Role, str], str], at: Boundary) -> list[Omission]:
    """Return the optimizer state that was not restored."""
    if at.due.optimizer == at.resumed.optimizer:
        return []
    due, resumed = _of_role(state, at, Role.OPTIMIZER)
    absent = tuple(name for name in due if name not in resumed)
    other = tuple(name for name in due if name in resumed and resumed[name] != due[name])
    if absent and not resumed:
        return [Omission(Part.OPTIMIZER, Fact.of(FactCode.OPTIMIZER_EMPTY, absent))]
    if not absent and not other:
        return []
    return [Omission(Part.OPTIMIZER, Fact.of(FactCode.OPTIMIZER_DIFFERS, (*absent, *other), len(due)))]


def _of_role(
    state: dict[tuple[Role, str], str], at: Boundary, role: Role
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digests by name in the whole run's state and in the resumed run's."""
    due = {name: digest for (kind, name), digest in state.items() if kind == role}
    return due, {name: digest for kind, name, digest in at.resumed.tensors if kind == role}


def _are_initial(at: Boundary, role: Role, names: Iterable[str]) -> bool:
    initial = {name: digest for kind, name, digest in at.initial.tensors if kind == role}
    resumed = {name: digest for kind, name, digest in at.resumed.tensors if kind == role}
    return all(resumed.get(name) == initial.get(name) for name in names)


def _settings(at: Boundary) -> list[Omission]:
    due, resumed = at.due.settings, at.resumed.settings
    wrong = [
        name for name, text in due.items()
        if name in resumed and resumed[name] != text and not name.endswith(_NO_MATTER)
    ]  # fmt: skip
    result = []
    for part in (Part.HYPERPARAMETERS, Part.SCHEDULE, Part.SCALER):
        settings = [(name, resumed[name], due[name]) for name in wrong if _part(name) == part]
        if settings:
            result.append(Omission(part, Fact.of(FactCode.SETTINGS_DIFFER, *settings)))
    return result


def _part(setting: str) -> Part:
    """Return the part that a setting belongs to, by its name in the state log."""
    if " group " in setting:
        return Part.HYPERPARAMETERS
    return Part.SCALER if setting.startswith("GradScaler") else Part.SCHEDULE


def _generators(whole: WholeRun, record: Record, at: Boundary) -> list[Omission]:
    wrong = _wrong_generators(at)
    if not wrong:
        return []
    used, seen = _history(whole, at, wrong)
    ends = _at_the_end(record, at.due.step)
    groups: dict[Fact, list[str]] = {}
    for name in at.due.generators:
        if name in wrong & used:
            groups.setdefault(_state(name, at, ends, seen), []).append(name)
    return [
        Omission(Part.GENERATOR, Fact.of(FactCode.GENERATORS, tuple(names), state))
        for state, names in groups.items()
    ]


def _wrong_generators(at: Boundary) -> set[str]:
    """Return the generators whose state is not that of the whole run."""
    resumed = at.resumed.generators
    return {name for name, state in at.due.generators.items() if resumed.get(name, state) != state}


def _state(name: str, at: Boundary, ends: dict[str, str], seen: dict[str, Fact]) -> Fact:
    """Return what the state of a generator is instead."""
    if ends.get(name) == at.resumed.generators[name]:
        return Fact.of(FactCode.STATE_LATE, at.due.step - 1)
    return seen.get(name, Fact.of(FactCode.STATE_OF_NO_STEP))


def _at_the_end(record: Record, step: int) -> dict[str, str]:
    """Return the states of the generators at the end of the step before one; empty before the first."""
    before = next(islice(optimizer_steps(record), step - 1, None), None) if step else None
    return {} if before is None else {name: state[:8].hex() for name, state in before.generators.items()}


def idle_generators(whole: WholeRun, at: Boundary) -> list[str]:
    """Return generators that were not restored, but that the whole run never drew from after that step."""
    wrong = _wrong_generators(at)
    used, _ = _history(whole, at, wrong) if wrong else (set(), {})
    return [name for name in at.due.generators if name in wrong - used]


def _history(whole: WholeRun, at: Boundary, wrong: set[str]) -> tuple[set[str], dict[str, Fact]]:
    """Return generators drawn from after that step, and the steps with the resumed run's states."""
    used: set[str] = set()
    seen: dict[str, Fact] = {}
    for begun in whole.lines.passes:
        for name in wrong:
            state = begun.generators.get(name)
            if begun.step == 0 and state == at.resumed.generators[name]:
                seen.setdefault(name, Fact.of(FactCode.STATE_AT_START))
    for before in steps_before(whole.log):
        for name in wrong:
            state = before.generators.get(name)
            if state == at.resumed.generators[name] and before.step != at.due.step:
                seen.setdefault(name, Fact.of(FactCode.STATE_BEFORE_STEP, before.step))
            if before.step > at.due.step and state != at.due.generators[name]:
                used.add(name)
    return used, seen
