"""The sentence that says why two runs differ, and what running the operations again showed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind, specification_of
from samebits.comparison.results import site_text
from samebits.recording.replay_results import SkipReason
from samebits.records.kinds import EventKind
from samebits.report.evidence import confirmation
from samebits.report.style import count, number
from samebits.rng.sources import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.comparison.results import Finding, Origin, Source
    from samebits.recording.replay_results import ReplaySummary, Skipped

"""What an event was, by its kind."""
_FRESH = re.compile(r"random\.(Random|seed)|numpy\.random\.SeedSequence|torch\.Generator\.seed")
_BY_KIND = {
    OriginKind.CONTROL_FLOW: "is where the runs begin to do different things",
    OriginKind.ARGUMENT: "gave an operation a different number in each run",
    OriginKind.OUTSIDE: "brought in a value that differs between the runs",
    OriginKind.BATCH: "took a different batch from the loader in each run",
    OriginKind.ORDER: "ran operations in a different order, or used a different tensor",
    OriginKind.RNG: "drew from a generator that was in a different state in each run",
    OriginKind.KERNEL: "ran an operation that gave different bits for the same inputs",
}


def why(finding: Finding) -> str:
    """Return the line, what it did, and the pairs of runs that show that this is the reason.

    Args:
        finding: an origin.
    """
    origin = finding.origin
    source = _source(finding)
    drawn = source.site if source is not None and specification_of(finding.cause).is_drawn else None
    where = site_text(drawn or origin.site) if drawn or origin.site else "code outside Python"
    reached = f", and it reached {site_text(origin.site)}" if drawn and drawn != origin.site else ""
    step = "" if origin.step is None else f"step {origin.step}: "
    shown = f"; {confirmation(finding.diagnosis.confirmed_by)}" if finding.diagnosis.confirmed_by else ""
    return f"{step}{where} {_what(finding, source)}{reached}{shown}"


def _what(finding: Finding, taken_from: Source | None) -> str:
    """Say what the line did, from the cause and its source."""
    origin = finding.origin
    known, source = specification_of(finding.cause), taken_from.op if taken_from is not None else ""
    if taken_from is not None and taken_from.is_left_file:
        return f"read what the previous run had written ({source})"
    if finding.cause == Cause.ENVIRONMENT and origin.origin_kind == OriginKind.KERNEL:
        return f"ran {origin.op}, which gave other bits for the same inputs; the environments differ"
    if known.library:
        return _seeding(finding.origin, known.sentence, title_of(known.library), source)
    without_op = origin.origin_kind == OriginKind.NONE and known.sentence_without_op
    sentence = without_op or known.sentence or _BY_KIND.get(origin.origin_kind, "is where the runs diverge")
    return sentence.format(source=f" ({source})" if source else "", op=origin.op, taken=source or origin.op)


def _seeding(origin: Origin, sentence: str, library: str, source: str) -> str:
    if _FRESH.match(source):
        return f"made a {library} generator without a seed ({source})"
    if origin.kind == EventKind.RNG and origin.op == "seed" and not source:
        return f"gave {library}'s generator a different seed in each run"
    return sentence.format(library=library)


def _source(finding: Finding) -> Source | None:
    """Return the source of the cause, preferably on the line of the finding."""
    own = [source for source in finding.origin.sources if source.cause == finding.cause]
    here = [source for source in own if source.site == finding.origin.site]
    return next(iter(here or own), None)


_MOST_OPS = 6
# Repeating these shows nothing, so they are only counted.
_COUNTED = (SkipReason.VIEW, SkipReason.UNINITIALIZED, SkipReason.NO_RESULT, SkipReason.PROFILER)
_SKIPPED: Mapping[SkipReason, str] = {
    SkipReason.VIEW: "view",
    SkipReason.UNINITIALIZED: "uninitialised memory",
    SkipReason.NO_RESULT: "no tensor result",
    SkipReason.PROFILER: "range of the profiler",
    SkipReason.SIDE_EFFECT: "side effect outside tensors",
    SkipReason.COMPILED: "operator that runs other operators",
    SkipReason.OBJECT: "an argument that is no plain value",
    SkipReason.SUBCLASS: "tensor without memory of its own",
    SkipReason.CAPTURING: "CUDA graph capture",
    SkipReason.GENERATOR: "generator that cannot be put back",
    SkipReason.UNDECLARED: "writes to an argument without saying so",
    SkipReason.UNREADABLE: "result that cannot be read",
    SkipReason.NEGATED: "it writes to memory that is read with its sign changed",
    SkipReason.FAILED: "error when executed again",
}


def summary_text(summary: ReplaySummary) -> str:
    """Return `412 calls of 38 operations executed again in 3 steps, all gave the same bits`."""
    times = "" if summary.times == 1 else f" {number(summary.times)} times each"
    calls, ops = count(summary.calls, "call"), count(summary.ops, "operation")
    what = f"{calls} of {ops} executed again{times}"
    unrepeated = len(summary.unrepeated)
    result = f"{count(unrepeated, 'operation')} did not repeat" if unrepeated else "all gave the same bits"
    return f"{what} in {count(summary.steps, 'step')}, {result}"


def skip_words(skipped: Skipped) -> str:
    """Say why an op was not executed again; in the words of its record if those are of another version."""
    reason = skipped.reason
    words = _SKIPPED[reason] if isinstance(reason, SkipReason) else reason
    return f"{words} ({skipped.error})" if skipped.error else words


def skipped_lines(summary: ReplaySummary) -> list[str]:
    """List what was not executed again: one line for what is only counted, one for each other reason."""
    reasons: dict[str, dict[str, int]] = {}
    for item in summary.skipped:
        reasons.setdefault(skip_words(item), {})[item.op] = item.calls
    only_counted = [_SKIPPED[reason] for reason in _COUNTED]
    counted = [f"{number(sum(reasons[r].values()))} {r}" for r in only_counted if r in reasons]
    lines = [f"not executed again: {', '.join(counted)}"] if counted else []
    for reason in sorted(reasons.keys() - set(only_counted)):
        names = [f"{op} {number(calls)}" for op, calls in reasons[reason].items()]
        more = f" and {len(names) - _MOST_OPS} more" if len(names) > _MOST_OPS else ""
        lines.append(f"not executed again, {reason}: {', '.join(names[:_MOST_OPS])}{more}")
    return lines
