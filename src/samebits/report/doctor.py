"""The threats to each promise on this machine, as text or JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.commands.doctor.environment import differing, is_relevant
from samebits.commands.doctor.threat import BREAKS, EVERY, LEVELS, MAY_BREAK, NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from samebits.commands.doctor.environment import EnvironmentSnapshot, SwitchView
    from samebits.commands.doctor.threat import Threat
    from samebits.report.style import Style

SCHEMA = 1
_MEANING = {
    EVERY: "every promise",
    "repeatable": "repeatable: the same script here gives the same bits, run after run",
    "resumable": "resumable: stopped and continued, the same bits as never stopped",
    "portable": "portable: the same bits on other machines and installations",
    "proven": "proven: a second run can show it",
}
_COLOURS = {BREAKS: ("red", "bold"), MAY_BREAK: ("yellow",), NOTE: ("dim",)}
_INDENT = 13
_LONGEST_NAME = 38


@dataclass(frozen=True, slots=True)
class Request:
    """The parts of the report that were asked for.

    Args:
        promises: those to show.
        why: show reasons and sources.
        all_switches: show every switch.
    """

    promises: tuple[str, ...]
    why: bool = False
    all_switches: bool = False


def render_text(
    snapshot: EnvironmentSnapshot, threats: Sequence[Threat], request: Request, style: Style
) -> str:
    """Return the threats, grouped by promise, then the switches, then a summary."""
    lines = _header(snapshot, style)
    for promise in (EVERY, *request.promises):
        own = [threat for threat in threats if threat.promise == promise]
        if own or promise != EVERY:
            lines += ["", *_group(promise, own, request, style)]
    lines += _switches(snapshot, request, style)
    return "\n".join([*lines, "", *_summary(threats, request, style)])


def render_json(snapshot: EnvironmentSnapshot, threats: Sequence[Threat]) -> str:
    """Return the same as one JSON object: the schema of docs/reference/doctor.md."""
    differ = {view.name for view in differing(snapshot)}
    switches = [
        {**asdict(view), "promises": list(view.promises), "differs": view.name in differ}
        for view in snapshot.switches
    ]
    return _text(
        {
            "schema": SCHEMA,
            "error": None,
            "torch": snapshot.torch.version or None,
            "counts": {level.replace(" ", "_"): count for level, count in _counts(threats).items()},
            "threats": [asdict(threat) for threat in threats],
            "switches": switches,
        }
    )


def render_error(message: str) -> str:
    """Return the object for a check that was not possible."""
    counts = {level.replace(" ", "_"): 0 for level in LEVELS}
    fields = {"schema": SCHEMA, "error": message, "torch": None, "counts": counts}
    return _text({**fields, "threats": [], "switches": []})


def _text(fields: dict[str, object]) -> str:
    return json.dumps(fields, indent=2, allow_nan=False)


def _header(snapshot: EnvironmentSnapshot, style: Style) -> list[str]:
    cpus = f"{snapshot.cpus.usable} CPU{'' if snapshot.cpus.usable == 1 else 's'}"
    words = [
        f"torch {snapshot.torch.version}" if snapshot.torch.version else "no torch",
        f"Python {snapshot.interpreter.version}",
        f"{cpus} ({snapshot.cpus.processor})" if snapshot.cpus.processor else cpus,
        *sorted({gpu.name for gpu in snapshot.torch.gpus}),
    ]
    return [style.paint(line, "dim") for line in style.wrap(printable(", ".join(words)))]


def _group(promise: str, threats: Iterable[Threat], request: Request, style: Style) -> list[str]:
    name, colon, meaning = _MEANING[promise].partition(":")
    lines = [style.paint(name, "bold") + style.paint(colon + meaning, "dim")]
    for threat in threats:
        lines += _threat(threat, request, style)
    return lines if len(lines) > 1 else [*lines, f"  {style.paint('nothing found', 'green')}"]


def _threat(threat: Threat, request: Request, style: Style) -> list[str]:
    text = style.wrap(printable(threat.found), indent=_INDENT)
    label = style.paint(f"  {threat.level:{_INDENT - 2}}", *_COLOURS[threat.level])
    lines = [label + text[0][_INDENT:], *text[1:]]
    lines += style.wrap(f"> {printable(threat.remedy)}", indent=_INDENT, hanging=_INDENT + 2)
    if request.why:
        reason = f"{threat.why} [{threat.source}]"
        lines += [style.paint(line, "dim") for line in style.wrap(printable(reason), indent=_INDENT)]
    return lines


def _switches(snapshot: EnvironmentSnapshot, request: Request, style: Style) -> list[str]:
    differ = differing(snapshot)
    views = snapshot.switches if request.all_switches else differ
    if not views:
        return []
    every = request.all_switches
    title = "all switches" if every else "switches that control would set"
    rest = ": name, value now -> wanted" if every else ": name, value now -> wanted, until when"
    width = min(_LONGEST_NAME, max(len(view.name) for view in views))
    lines = ["", style.paint(title, "bold") + style.paint(rest, "dim")]
    for view in views:
        differs = view in differ
        text = _value(view, snapshot) if every else f"{_value(view, snapshot)}, {view.when}"
        text = printable(f"{view.name:{width}}  {text}")
        wrapped = style.wrap(text, indent=2, hanging=width + 4)
        lines += [style.paint(line, "yellow") if differs else line for line in wrapped]
        if every or request.why:
            reason = f"{view.when}; {view.why}" if every else view.why
            wrapped = style.wrap(printable(f"{reason} [{view.source}]"), indent=6)
            lines += [style.paint(line, "dim") for line in wrapped]
    return lines


def _value(view: SwitchView, snapshot: EnvironmentSnapshot) -> str:
    """Return the value now, and the one under control."""
    if view.missing:
        return f"missing: {view.missing}"
    now = view.now or "not set"
    if view.wanted is None:
        return f"{now} (expected {view.problem})" if view.problem else f"{now} (kept as it is)"
    if view.fits and not view.problem:
        return now
    return f"{now} -> {view.wanted}{'' if is_relevant(view, snapshot) else ' (not needed here)'}"


def _summary(threats: Sequence[Threat], request: Request, style: Style) -> list[str]:
    counts = _counts(threats)
    notes = f"{counts[NOTE]} note{'' if counts[NOTE] == 1 else 's'}"
    verb = "breaks" if counts[BREAKS] == 1 else "break"
    broken = f"{counts[BREAKS]} {verb} a promise" if counts[BREAKS] else "nothing breaks a promise"
    colour = ("red", "bold") if counts[BREAKS] else ("green",)
    line = f"{style.paint(broken, *colour)}; {counts[MAY_BREAK]} may break one; {notes}"
    return [line] if request.why else [line, style.paint("why, and sources: samebits doctor --why", "dim")]


def _counts(threats: Iterable[Threat]) -> dict[str, int]:
    counts = Counter(threat.level for threat in threats)
    return {level: counts[level] for level in LEVELS}
