"""An entry of a lock file: what a run gave, step by step, and the environment that matters."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from samebits.comparison.step_digests import StepDigest, merged, step_digests
from samebits.environment.snapshot import fact_at, table_at
from samebits.environment.unread import unread_in
from samebits.errors import SamebitsError
from samebits.records.events import RunInfo
from samebits.records.kinds import Level
from samebits.records.reader import RecordReader
from samebits.switches.table import SET
from samebits.switches.variables import HARMLESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from samebits.switches.switch import Control

_SINGLE = 100  # steps at the beginning that have a row each
_GROUPS = 100  # rows for all later ones
_DIGITS = 7
_MOST_NUMBERS = 3
_NUMBERS = {"backward": "loss", "read": "read"}  # what a lock calls the values of a run (`ValueLog`)
DIGEST_SHOWN = 16  # digits of the SHA-256 of a file
_LONGEST = 200
_MACHINE = ("architecture", "processor", "instructions", "libc")
_TORCH = (
    "version", "git", "cuda", "cudnn", "mkl", "onednn", "openmp", "capability", "threads", "default_dtype",
    "gpus",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LockRow:
    """The bits of one step, or of several consecutive steps of a long run.

    Args:
        first: number of the first step.
        last: number of the last; with `END` the part after the last step.
        state: digest of gradients and state, as of `StepDigest`.
        values: digest of what was read out or saved.
        numbers: some of the values of its first step, for people: (`loss` or `read`, value).
    """

    first: int
    last: int
    state: str
    values: str
    numbers: tuple[tuple[str, float], ...] = ()


END = -1
"""Number of the row of what came after the last step."""


@dataclass(frozen=True)
class LockEntry:
    """What one command gave, or a function that a test calls.

    Args:
        name: of the entry.
        command: the script, or `-m` and a module, and the arguments; a script relative to the lock's folder.
            Empty for a function of a test.
        control: seed, switches and mode of the run.
        interventions: names of the interventions of the run.
        max_steps: the run was stopped after this many steps; None where it went to its end.
        steps: how many steps it had.
        rows: its digests.
        environment: the part of the environment that can matter, under the keys of a record.
        commit: the commit that was checked out; empty outside a repository.
        samebits: version of the program that wrote it.
        trace: how many steps the record beside the lock has, with every operation.
        test: node id of the test that calls the function, relative to the lock's folder; empty for a command.
    """

    name: str
    command: tuple[str, ...]
    control: Control | None
    steps: int
    rows: tuple[LockRow, ...]
    interventions: tuple[str, ...] = ()
    max_steps: int | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    commit: str = ""
    samebits: str = ""
    trace: int = 0
    test: str = ""

    @property
    def info(self) -> RunInfo:
        """The facts of the locked run, as a record has them, to compare environments."""
        control = {} if self.control is None else self.control.to_dict()
        return RunInfo(
            self.command,
            Level.STEP,
            "finished",
            steps=self.steps,
            environment=self.environment,
            control=control,
        )

    @property
    def is_portable(self) -> bool:
        """True if the bits are to be the same on every machine."""
        return self.control is not None and self.control.portable


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first row in which a run differs from its lock.

    Args:
        row: number of the row.
        locked: what the lock has; None where the run has more.
        here: what the run gave; None where the run has less.
        steps: the number of steps of the lock and of the run.
    """

    row: int
    locked: LockRow | None
    here: LockRow | None
    steps: tuple[int, int]

    @property
    def of_state(self) -> bool:
        """True if gradients or state differ, and not only values that were read out or saved."""
        return self.locked is None or self.here is None or self.locked.state != self.here.state

    @property
    def last_step(self) -> int | None:
        """The number of the last step that must run to see it; None where the run must end."""
        shown = self.locked if self.locked is not None else self.here
        return None if shown is None or shown.last == END else shown.last


def rows_of(record: str, values: str = "") -> tuple[LockRow, ...]:
    """Return the rows of a run.

    Args:
        record: path of its record.
        values: path of the file with its values (`RecordingSettings.values`); empty for none.

    Raises:
        SamebitsError: the record cannot be read; several threads make steps (`lock-threads`).
    """
    with RecordReader(record) as reader:
        digests = step_digests(reader)
    if digests is None:
        message = (
            "several threads of the script make steps, whose order is chance; expected a script that trains "
            "in one thread. `samebits verify` compares such runs"
        )
        raise SamebitsError(message, slug="lock-threads")
    numbers = _numbers(values) if values else {}
    return tuple(_rows(digests, numbers))


def _rows(digests: Sequence[StepDigest], numbers: dict[int, list[tuple[str, float]]]) -> Iterator[LockRow]:
    closed = [each for each in digests if each.closed]
    rest = [each for each in digests if not each.closed]
    for group in _groups(closed):
        whole = group[0] if len(group) == 1 else merged(group)
        shown = tuple(numbers.get(group[0].last, ())[:_MOST_NUMBERS])
        yield LockRow(whole.first, whole.last, whole.state, whole.values, shown)
    if rest:
        whole = rest[0] if len(rest) == 1 else merged(rest)
        shown = tuple(pair for each in rest for pair in numbers.get(each.last, ()))[-_MOST_NUMBERS:]
        yield LockRow(END, END, whole.state, whole.values, shown)


def _groups(digests: Sequence[StepDigest]) -> Iterator[Sequence[StepDigest]]:
    """Divide steps into those of each row. The borders do not depend on how many steps follow."""
    at, size = 0, 1
    while at < len(digests):
        yield digests[at : at + size]
        at += size
        if at >= _SINGLE and (at - _SINGLE) % (_GROUPS * size) == 0:
            size *= 2


def _numbers(path: str) -> dict[int, list[tuple[str, float]]]:
    """Read the values of each step that a run wrote beside its record, the losses first."""
    numbers: dict[int, list[tuple[str, float]]] = {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    except (OSError, ValueError):  # they only illustrate the digests
        return {}
    for line in lines:
        if not isinstance(line, list):  # the last line
            continue
        source, _, step, value = line
        if source in _NUMBERS:
            numbers.setdefault(int(step), []).append((_NUMBERS[source], float(value)))
    return {step: sorted(pairs, key=itemgetter(0)) for step, pairs in numbers.items()}


def rounded(value: float) -> float:
    """Return a value with as many digits as a lock holds."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else value


def first_mismatch(
    locked: Sequence[LockRow], here: Sequence[LockRow], *, up_to: int | None = None
) -> Mismatch | None:
    """Return the first row in which a run differs from its lock; None if there is none.

    Args:
        locked: rows of the lock.
        here: rows of the run.
        up_to: only rows whose last step is at most this; for a run that was stopped there.
    """
    ours, theirs = _until(locked, up_to), _until(here, up_to)
    steps = (_last(locked) + 1, _last(here) + 1)
    for number in range(max(len(ours), len(theirs))):
        first = ours[number] if number < len(ours) else None
        second = theirs[number] if number < len(theirs) else None
        if first is None or second is None or _bits(first) != _bits(second):
            return Mismatch(number, first, second, steps)
    return None


def with_names_below(info: RunInfo, root: str, folder: str) -> RunInfo:
    """Return facts whose data files below a folder have names relative to another one.

    A run that reads a file through a link names the place that the link leads to.

    Args:
        info: of the run.
        root: below which they are.
        folder: to which their names are relative.
    """

    def renamed(name: str) -> str:
        path = os.path.expanduser(name)
        return os.path.relpath(path, folder) if path.startswith(root + os.sep) else name

    data = table_at(info.environment, "data")
    files = {renamed(name): row for name, row in table_at(data, "files").items()}
    return replace(info, environment={**info.environment, "data": {**data, "files": files}})


def agree(locked: Iterable[LockRow], traced: Iterable[LockRow]) -> bool:
    """Tell whether the first steps of a run have the bits of a lock, where both have a row for one step."""
    wanted = {row.first: _bits(row) for row in locked if row.first == row.last != END}
    own = (row for row in traced if row.first == row.last and row.first in wanted)
    return all(_bits(row) == wanted[row.first] for row in own)


def _bits(row: LockRow) -> tuple[int, int, str, str]:
    return row.first, row.last, row.state, row.values


def _until(rows: Sequence[LockRow], last: int | None) -> Sequence[LockRow]:
    return rows if last is None else [row for row in rows if row.last != END and row.last <= last]


def _last(rows: Iterable[LockRow]) -> int:
    return max((row.last for row in rows), default=-1)


# ---- the environment that matters


def locked_environment(info: RunInfo) -> dict[str, Any]:
    """Return the part of a run's environment that a lock holds: what can change bits, in few lines.

    Variables that control sets are left out, because the control is in the lock.
    """
    environment = info.environment
    facts = {
        "machine": _chosen(table_at(environment, "machine"), _MACHINE),
        "python": table_at(environment, "python"),
        "torch": _chosen(table_at(environment, "torch"), _TORCH),
        "variables": _variables(info),
        "packages": table_at(environment, "packages"),
        "code": _digests_of(table_at(environment, "code")),
        "data": _data_of(table_at(environment, "data")),
    }
    return {name: _plain(value) for name, value in facts.items()}


def here_as_locked(info: RunInfo) -> RunInfo:
    """Return the facts of a run with only the part of its environment that a lock holds."""
    return replace(info, status="finished", environment=locked_environment(info))


def _variables(info: RunInfo) -> dict[str, Any]:
    rows = table_at(info.control, "results")
    by_control = {name for name, row in rows.items() if fact_at(row, "state") == SET}
    variables = table_at(info.environment, "variables")
    return {name: value for name, value in variables.items() if name not in by_control | HARMLESS}


def _chosen(table: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: table[name] for name in names if table.get(name) is not None}


def _digests_of(files: dict[str, Any], keys: Sequence[str] = ()) -> dict[str, Any]:
    return {
        name: {"sha256": sha256[:DIGEST_SHOWN], **{key: int(fact_at(row, key) or 0) for key in keys}}
        for name, row in files.items()
        if isinstance(sha256 := fact_at(row, "sha256"), str)
    }


def _data_of(data: dict[str, Any]) -> dict[str, Any]:
    """Return the digests of the data; of files without one the reason, where there are any."""
    unread = unread_in(data)
    told = {"unread": unread.files, "unlisted": unread.unlisted}
    files = _digests_of(table_at(data, "files"), ("size", "count"))
    return {"files": files, **{name: value for name, value in told.items() if value}}


def _plain(value: Any) -> Any:
    """Return a fact as TOML can hold it."""
    if isinstance(value, dict):
        return {_encodable(name): _plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value if each is not None]
    return value if isinstance(value, bool | int | float) else _encodable(value)[:_LONGEST]


def _encodable(value: object) -> str:
    """Return text that UTF-8 can hold: other bytes of a file name become escape sequences."""
    return str(value).encode(errors="backslashreplace").decode()


def own_command(command: tuple[str, ...], lock: str) -> tuple[str, ...]:
    """Return a command whose script is named relative to the folder of a lock file."""
    if command[:1] == ("-m",):
        return command
    folder = os.path.dirname(os.path.abspath(lock))
    script = os.path.relpath(os.path.abspath(command[0]), folder).replace(os.sep, "/")
    return (script, *command[1:])
