"""Reads the state log and the optimizer steps of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits.comparison.steps import steps
from samebits.errors import SamebitsError
from samebits.records.kinds import Role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from samebits.comparison.lookup import Record
    from samebits.comparison.steps import Step

Texts = dict[str, str]


@dataclass(frozen=True)
class Before:
    """The state before one optimizer step.

    Args:
        step: its number in the run.
        params: one digest over the parameters.
        buffers: the same of the buffers.
        optimizer: the same of the state of all optimizers.
        generators: a digest of each global generator's state.
        settings: hyperparameters, schedules, scalers.
        variables: values of the user's variables.
        tensors: role, name and digest of each tensor; for the first step of a run only.
    """

    step: int
    params: str
    buffers: str
    optimizer: str
    generators: Texts
    settings: Texts
    variables: Texts
    tensors: tuple[tuple[Role, str, str], ...] = ()


@dataclass(frozen=True)
class Batch:
    """One batch that a loader gave.

    Args:
        step: optimizer steps before it.
        seq: number of its event in the record.
        site: file and line.
        number: its position in its pass over the data.
        pass_number: number of the pass.
        indices: of its samples; None where they are not known.
    """

    step: int
    seq: int
    site: tuple[str, int] | None
    number: int | None
    pass_number: int | None
    indices: tuple[int, ...] | None


@dataclass(frozen=True)
class Pass:
    """The start of a pass over the data.

    Args:
        step: optimizer steps before it.
        number: of the pass over that data set.
        generators: states before it, with the loader's own generator.
        workers: how many processes load.
    """

    step: int
    number: int
    generators: Texts
    workers: int = 0


@dataclass(frozen=True)
class StateLogLines:
    """A state log without the lines of its steps, which are read one by one."""

    batches: tuple[Batch, ...]
    passes: tuple[Pass, ...]
    n_steps: int = 0
    keys: tuple[tuple[str, str, str], ...] = field(default=())


def read_lines(path: Path) -> StateLogLines:
    """Read batches, passes, and the digests of all steps.

    Raises:
        SamebitsError: the file cannot be read; `resume-log`.
    """
    batches, passes, keys = [], [], []
    for line in _objects(path):
        noted = line["kind"]
        if noted == "batch":
            site = line["site"]
            indices = line["indices"]
            batches.append(Batch(
                line["step"], line["seq"], None if site is None else (site[0], site[1]), line["number"],
                line["pass"], None if indices is None else tuple(indices),
            ))  # fmt: skip
        elif noted == "pass":
            passes.append(Pass(line["step"], line["number"], line["generators"], line["workers"]))
        elif noted == "step":
            keys.append((line["params"], line["buffers"], line["optimizer"]))
    return StateLogLines(tuple(batches), tuple(passes), len(keys), tuple(keys))


def steps_before(path: Path) -> Iterator[Before]:
    """Yield the state before each step, in order.

    Raises:
        SamebitsError: the file cannot be read; `resume-log`.
    """
    settings: Texts = {}
    variables: Texts = {}
    for line in _objects(path):
        if line["kind"] != "step":
            continue
        settings, variables = _changed(settings, line["settings"]), _changed(variables, line["variables"])
        tensors = tuple((Role(role), name, digest) for role, name, digest in line.get("tensors", ()))
        yield Before(
            line["step"], line["params"], line["buffers"], line["optimizer"], line["generators"], settings,
            variables, tensors,
        )  # fmt: skip


def before_step(path: Path, step: int) -> Before | None:
    """Return the state before one step; None when the run did not get there."""
    return next((before for before in steps_before(path) if before.step == step), None)


def _changed(known: Texts, changes: dict[str, str | None]) -> Texts:
    merged = {**known, **changes}
    return {name: text for name, text in merged.items() if text is not None}


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:  # cut off by the kill
                    return
                yield line
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}; the run should have written it"
        raise SamebitsError(message, slug="resume-log") from None


Digests = dict[tuple["Role", str], bytes]  # by role and name


def optimizer_steps(record: Record) -> Iterator[Step]:
    """Yield the steps that an optimizer closed, in order, and last the events after them, if any.

    A step between optimizer steps that no optimizer closed (a backward pass before the first
    optimizer was made) is left out.
    """
    for step in steps(record):
        if is_optimizer_step(step) or not step.closed:
            yield step


def is_optimizer_step(step: Step) -> bool:
    """Tell whether an optimizer closed the step."""
    return any(event.op.endswith(".step") for event in step.states)


def count_steps(record: Record) -> int:
    """Return the number of optimizer steps of a run."""
    return sum(is_optimizer_step(step) for step in optimizer_steps(record))


def update(known: Digests, step: Step) -> None:
    """Take in the state that a step left: an event holds the state of the model and of one optimizer."""
    for event in step.states:
        for info, digest in zip(event.tensors, event.digests, strict=True):
            known[info.role, info.name] = digest
