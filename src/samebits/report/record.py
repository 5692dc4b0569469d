"""The contents of one record, as text or JSON."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.printable import printable, shortened
from samebits.records.events import END
from samebits.records.kinds import EventKind, Role
from samebits.report.device_faults import failure_words
from samebits.report.json import site_json
from samebits.report.notes import sentence, sentences
from samebits.report.run_facts import environment_lines, torch_line
from samebits.report.style import Style, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.records.events import Event, RunInfo

_LAST_EVENTS = 8
_SHOWN_TENSORS = 4
_FIRST_STEPS, _LAST_STEPS = 5, 10
_ROLES = (Role.PARAM, Role.BUFFER, Role.OPTIMIZER, Role.GRAD)


@dataclass(frozen=True)
class StepSummary:
    """One step boundary.

    Args:
        step: its index.
        op: what closed it, such as `SGD.step`.
        n_tensors: how many tensors were digested.
        digests: per role, one digest over all tensors of that role; empty where there are none.
    """

    step: int
    op: str
    n_tensors: int
    digests: dict[Role, str]


@dataclass(frozen=True)
class RecordSummary:
    """One record.

    Args:
        path: of the record.
        n_bytes: its size.
        info: what is known of the run.
        counts: events of each kind.
        n_values: tensors digested.
        first_steps: the first step boundaries.
        last_steps: the last ones, without those in `first_steps`.
        last_events: the last events.
    """

    path: str
    n_bytes: int
    info: RunInfo
    counts: dict[EventKind, int]
    n_values: int
    first_steps: tuple[StepSummary, ...]
    last_steps: tuple[StepSummary, ...]
    last_events: tuple[Event, ...]


def summarize(path: str, n_bytes: int, info: RunInfo, events: Iterable[Event]) -> RecordSummary:
    """Summarise a record in one pass over its events, in bounded memory."""
    counts: Counter[EventKind] = Counter()
    n_values = 0
    first: list[StepSummary] = []
    last: deque[StepSummary] = deque(maxlen=_LAST_STEPS)
    tail: deque[Event] = deque(maxlen=_LAST_EVENTS)
    gradients: dict[str, bytes] = {}
    for event in events:
        counts[event.kind] += 1
        n_values += len(event.digests)
        tail.append(event)
        if event.kind == EventKind.GRAD:
            gradients.update(_named_digests(event, Role.GRAD))
        if event.kind == EventKind.STEP and event.op != END:
            (first if len(first) < _FIRST_STEPS else last).append(_step(event, gradients))
            gradients = {}
    steps = tuple(first), tuple(last)
    return RecordSummary(path, n_bytes, info, dict(counts), n_values, *steps, tuple(tail))


def render_text(summary: RecordSummary, style: Style) -> str:
    """Return the summary as text."""
    return "\n".join([*_header(summary, style), "", *_steps(summary, style), *_tail(summary, style)])


def render_json(summary: RecordSummary) -> str:
    """Return the summary as one JSON object."""
    info = summary.info
    return json.dumps(
        {
            "schema": 1,
            "record": summary.path,
            "bytes": summary.n_bytes,
            "command": list(info.command),
            "level": info.level,
            "status": info.status,
            "exit_status": info.exit_status,
            "failure": info.failure,
            "steps": info.steps,
            "torch": info.torch,
            "environment": info.environment,
            "control": info.control,
            "notes": sentences(info.notes),
            "events": summary.counts,
            "values": summary.n_values,
            "first_steps": [vars(step) for step in summary.first_steps],
            "last_steps": [vars(step) for step in summary.last_steps],
        },
        indent=2,
        default=str,
    )


def render_events(events: Iterable[Event], style: Style) -> Iterable[str]:
    """Return one line for each event."""
    head = f"{'seq':>6} {'step':>5} {'kind':5} {'op':24} {'site':18} digests"
    yield style.paint(head[: style.width].rstrip(), "dim")
    for event in events:
        yield _event_line(event, style.width)


def event_json(event: Event) -> str:
    """Return one event as a line of JSON."""
    tensors = [
        {"role": t.role, "name": t.name, "dtype": t.dtype, "shape": list(t.shape), "digest": digest.hex()}
        for t, digest in zip(event.tensors, event.digests, strict=False)
    ]
    return json.dumps(
        {
            "seq": event.seq,
            "step": event.step,
            "kind": event.kind,
            "op": event.op,
            "site": site_json(event.site),
            "forward_site": site_json(event.forward_site),
            "module": event.module,
            "thread": event.thread,
            "arguments": event.arguments,
            "tensors": tensors,
        }
    )


def _step(event: Event, gradients: dict[str, bytes]) -> StepSummary:
    digests = {}
    for role in _ROLES:
        earlier = gradients if role == Role.GRAD else {}
        chosen = b"".join({**earlier, **_named_digests(event, role)}.values())
        digests[role] = hashlib.blake2b(chosen, digest_size=16).hexdigest() if chosen else ""
    return StepSummary(event.step, event.op, len(event.digests) + len(gradients), digests)


def _named_digests(event: Event, role: Role) -> dict[str, bytes]:
    pairs = zip(event.tensors, event.digests, strict=False)
    return {tensor.name: digest for tensor, digest in pairs if tensor.role == role}


def _header(summary: RecordSummary, style: Style) -> list[str]:
    info = summary.info
    counts = ", ".join(f"{kind} {number(count)}" for kind, count in sorted(summary.counts.items()))
    rows = [
        ("record", f"{summary.path} ({_size(summary.n_bytes)}, {info.level} level)"),
        ("command", " ".join(info.command)),
        ("status", status_text(info)),
        ("steps", f"{number(info.steps)}, {number(summary.n_values)} values digested"),
        ("events", counts or "none"),
        ("torch", torch_line(info.torch, info.environment)),
        *environment_lines(info.environment),
        *(("note", sentence(note)) for note in info.notes),
    ]
    lines: list[str] = []
    for name, text in rows:
        wrapped = style.wrap(printable(shortened(text)), indent=12)
        label = style.paint(f"{name[:11]:12}", "dim")
        lines += [label + wrapped[0][12:], *wrapped[1:]]
    return lines


def status_text(info: RunInfo) -> str:
    """Say how a run ended."""
    open_ended = (
        "not closed: the run was killed, or is still running" if info.exit_status is None else "not closed"
    )
    text = {"running": open_ended, "stopped": "stopped by samebits"}.get(info.status, info.status)
    if info.exit_status is not None:
        text += f", exit status {info.exit_status}"
    return f"{text}, {failure_words(info.failure)}" if info.failure else text


def _steps(summary: RecordSummary, style: Style) -> list[str]:
    steps = (*summary.first_steps, *summary.last_steps)
    if not steps:
        return [style.paint("no step boundary", "dim")]
    roles = [role for role in _ROLES if any(step.digests[role] for step in steps)]
    digits = max(6, min(16, (style.width - 34) // max(1, len(roles)) - 2))
    head = f"{'step':>7}  {'closed by':16} {'tensors':>7}" + "".join(f"  {role:{digits}}" for role in roles)
    lines = [style.paint(head.rstrip(), "dim")]
    previous = -1
    for step in steps:
        if step.step != previous + 1 and previous >= 0:
            lines.append(style.paint(f"{'...':>7}", "dim"))
        previous = step.step
        digests = "".join(f"  {step.digests[role][:digits]:{digits}}" for role in roles)
        op = printable(step.op)[:16]
        lines.append(f"{step.step:7}  {op:16} {step.n_tensors:7}{digests}".rstrip())
    return lines


def _tail(summary: RecordSummary, style: Style) -> list[str]:
    if not summary.last_events:
        return []
    return ["", style.paint("last events", "dim"), *render_events(summary.last_events, style)]


def _event_line(event: Event, width: int) -> str:
    site = "" if event.site is None else f"{event.site.file.rsplit('/', 1)[-1]}:{event.site.line}"
    tensors = " ".join(
        f"{tensor.name or tensor.role}={digest.hex()[:8]}"
        for tensor, digest in zip(event.tensors[:_SHOWN_TENSORS], event.digests, strict=False)
    )
    more = len(event.tensors) - _SHOWN_TENSORS
    text = (f"{tensors} +{more}" if more > 0 else tensors) or event.arguments
    op = event.op.removeprefix("aten::").removesuffix(".default")
    line = f"{event.seq:6} {event.step:5} {event.kind:5.5} {op[:24]:24} {site[-18:]:18} {text}"
    return printable(line[: 4 * width])[:width].rstrip()


def _size(n_bytes: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
