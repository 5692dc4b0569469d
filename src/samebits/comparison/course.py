"""What one run did, step by step: which of its state changed, and what it recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.comparison.difference import decode
from samebits.comparison.step_chart import ChartBuilder, ModulePaths, RowKind, StepChart
from samebits.comparison.steps import steps
from samebits.recording.kept_values import unpack
from samebits.records.events import several_threads
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from samebits._runtime.frames import Site
    from samebits.comparison.steps import Step
    from samebits.recording.distance import Elements
    from samebits.records.events import Event, RunInfo
    from samebits.records.reader import RecordReader

_MOST_SEEDS = 40
MOST_SCALARS = 400
"""Losses and values read whose numbers are looked up."""
_STATE = (Role.PARAM, Role.BUFFER, Role.OPTIMIZER)


@dataclass(frozen=True)
class Seeding:
    """A call that seeded a generator.

    Args:
        call: with its arguments.
        site: its line.
        step: of the first such call.
        times: how often it came.
    """

    call: str
    site: Site | None
    step: int
    times: int


@dataclass(frozen=True)
class Scalar:
    """A loss or a value that was read, with the number that it was.

    Args:
        kind: `loss` or `read`.
        step: of it.
        site: the line.
        value: as text that shows every digit.
        number: the same, as a number.
    """

    kind: EventKind
    step: int
    site: Site | None
    value: str
    number: float


@dataclass(frozen=True)
class Course:
    """One run.

    Args:
        info: the facts of the run.
        steps: as a comparison counts them.
        chart: how many state tensors of each module changed in each step; None where steps mean nothing,
            as several threads make them, or where no state was recorded.
        counts: events of each kind.
        losses: by line of the script, how many losses were recorded.
        reads: by line, how many values were read out of torch.
        seedings: the calls that seeded generators, bounded.
        scalars: losses and values read whose numbers are known, at most `MOST_SCALARS`: a record holds
            digests, so that is so only where the tensor itself was captured.
        unlisted_seedings: how many calls that seeded generators are not among `seedings`.
    """

    info: RunInfo
    steps: int
    chart: StepChart | None
    counts: dict[EventKind, int]
    losses: tuple[tuple[Site | None, int], ...]
    reads: tuple[tuple[Site | None, int], ...]
    seedings: tuple[Seeding, ...]
    scalars: tuple[Scalar, ...]
    unlisted_seedings: int = 0


def course(record: RecordReader) -> Course:
    """Follow one run through its record.

    Raises:
        SamebitsError: `record-damaged`.
    """
    counts: Counter[EventKind] = Counter()
    lines: dict[EventKind, Counter[Site | None]] = {EventKind.LOSS: Counter(), EventKind.READ: Counter()}
    seedings: dict[tuple[str, Site | None], list[int]] = {}
    unlisted = 0
    for event in record.events():
        counts[event.kind] += 1
        if event.kind in lines:
            lines[event.kind][event.site] += 1
        elif event.kind == EventKind.RNG and event.op == "seed":
            unlisted += not _note_seeding(event, seedings)
    return Course(
        info=record.info,
        steps=record.n_steps(),
        chart=_changes(record),
        counts=dict(counts),
        losses=tuple(lines[EventKind.LOSS].items()),
        reads=tuple(lines[EventKind.READ].most_common()),
        seedings=tuple(Seeding(*key, *found) for key, found in seedings.items()),
        scalars=scalars(record),
        unlisted_seedings=unlisted,
    )


def _note_seeding(event: Event, seedings: dict[tuple[str, Site | None], list[int]]) -> bool:
    """Count a call that seeded a generator; False where there are too many others."""
    key = event.arguments, event.site
    if key not in seedings and len(seedings) >= _MOST_SEEDS:
        return False
    seedings.setdefault(key, [event.step, 0])[1] += 1
    return True


def _changes(record: RecordReader) -> StepChart | None:
    """Count the tensors whose digest is another than after the step before, by module."""
    if several_threads(record.events((EventKind.STEP,))):
        return None
    builder, paths = ChartBuilder(), ModulePaths()
    before: dict[tuple[Role, str], bytes] = {}
    for step in steps(record):
        held, changed = Counter[str](), Counter[str]()
        for (role, name), (path, digest) in _last_state(step, paths).items():
            held[path] += 1
            changed[path] += before.get((role, name), digest) != digest
            before[role, name] = digest
        if held:
            builder.add_state(step.last, changed, held)
    chart = builder.chart()
    return chart if any(row.kind == RowKind.MODULE for row in chart.rows) else None


def _last_state(step: Step, paths: ModulePaths) -> dict[tuple[Role, str], tuple[str, bytes]]:
    """Return the module and the digest of each state tensor of a step, gradients left out."""
    last = {}
    for event in step.states:
        for info, path, digest in zip(event.tensors, paths.of(event.tensors), event.digests, strict=True):
            if info.role in _STATE:
                last[info.role, info.name] = path, digest
    return last


def scalars(record: RecordReader) -> tuple[Scalar, ...]:
    """List the losses and values read whose numbers are known.

    A digest covers every bit of a tensor, its dtype and its shape. So a loss is the output of an earlier op
    that has the same digest, and where that output was captured, its value is known. `run --values` keeps
    losses themselves.

    Raises:
        SamebitsError: `record-damaged`.
    """
    captured = record.captured()
    if not captured:
        return ()
    found: list[Scalar] = []
    known: dict[bytes, tuple[Event, int]] = {}
    for event in record.events((EventKind.OP, EventKind.LOSS, EventKind.READ)):
        for position in captured.get(event.seq, ()):
            if position < len(event.tensors) and event.tensors[position].shape == ():
                known[event.digests[position]] = event, position
        is_value = event.kind != EventKind.OP and len(event.tensors) == 1
        if is_value and event.digests[0] in known and len(found) < MOST_SCALARS:
            found += _scalar(event, record, *known[event.digests[0]])
    return tuple(found)


def _scalar(event: Event, record: RecordReader, source: Event, position: int) -> list[Scalar]:
    elements = _elements(record, source, position)
    if elements is None or elements.bits.size != 1 or elements.dtype == "bool":
        return []
    text = elements.text(0)
    return [Scalar(event.kind, event.step, event.site, text, float(text))]


def _elements(record: RecordReader, event: Event, position: int) -> Elements | None:
    data = record.captures(event.seq)[position]
    if event.kind == EventKind.OP:
        return decode(data)
    kept = unpack(data, event.tensors[position])
    return None if kept is None else kept.elements
