"""Which pins may make runs identical, by what is known of where they part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.causes import Cause, OriginKind, causes_shown_by, specification_of
from samebits.causes.environment import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.comparison.results import Finding, Source
    from samebits.diagnosis.search import Pins

# The likeliest first.
ORDER = (
    "seed-torch", "seed-numpy", "seed-python", "hash-seed", "clock", "entropy", "listing",
    "deterministic", "threads", "completion", "layout", "serial-threads", "serial-processes", "workers",
    "fill", "process", "file-times", "memory-load", "inodes", "ports", "thread-calls", "eager", "autotuning",
    "seed-libraries",
)  # fmt: skip
_MOST_FINDINGS = 3
# What no draw shows: hashes, addresses, and facts that a script reads out of files such as /proc/meminfo.
_UNSEEN: tuple[Pins, ...] = (("hash-seed",), ("layout",), FACTS)
_SHARED = ("serial-processes",)  # memory that other processes write
# Where a difference came in without a known cause.
_BY_ENTRY: dict[OriginKind, tuple[Pins, ...]] = {
    # No op was found: compiled code has none to look at.
    OriginKind.NONE: (("deterministic",), ("threads",), ("eager",)),
    OriginKind.KERNEL: (("deterministic",), ("threads",)),
    OriginKind.RNG: (("seed-torch",),),
    OriginKind.UNINITIALIZED: (("fill",),),
    OriginKind.ORDER: (("hash-seed",), ("layout",), ("completion",), ("serial-threads",)),
    OriginKind.ARGUMENT: _UNSEEN,
    OriginKind.OUTSIDE: (*_UNSEEN, _SHARED),
    OriginKind.CONTROL_FLOW: _UNSEEN,
    OriginKind.BATCH: (*_UNSEEN, ("workers",), ("fill",)),
}


def likely_pins(findings: Iterable[Finding]) -> tuple[Pins, ...]:
    """Sets of pins that the evidence suggests, the likeliest first.

    Where there are several findings, the first sets hold a pin for each; findings whose cause is known come
    before the others. The last sets hold a pin for each source that was seen at one finding.

    Args:
        findings: the origins, the first one first.
    """
    ranked = sorted(findings, key=lambda finding: finding.cause == Cause.UNKNOWN)
    choices = [sets for sets in map(_choices, ranked) if sets]
    together = _merged(sets[0] for sets in choices)
    # Behind the first origin the order of a batch and what is in it may come from one generator each.
    sources = [_merged(_of_sources(finding)) for finding in ranked if finding.cause == Cause.UNKNOWN]
    all_sources = _merged([together, *sources]) if len(choices) > 1 else ()
    alone = [pins for sets in choices[:_MOST_FINDINGS] for pins in sets]
    # Two sources may meet in one place, such as an index from a sampler and one that a dataset draws.
    meeting = [_merged(_of_sources(finding)) for finding in ranked[:_MOST_FINDINGS]]
    return tuple(dict.fromkeys(pins for pins in (all_sources, together, *alone, *meeting) if pins))


def every_pin(possible: Iterable[str], first: Iterable[Pins] = ()) -> Pins:
    """All pins that are possible, those of likely sets first.

    Args:
        possible: names of the pins that can be used here.
        first: likely sets.
    """
    allowed = set(possible)
    ordered = dict.fromkeys([pin for pins in first for pin in pins] + list(ORDER) + sorted(allowed))
    return tuple(pin for pin in ordered if pin in allowed)


def cause_of_pin(finding: Finding, pin: str) -> Cause:
    """The cause that is shown by a pin that made the runs identical.

    Args:
        finding: the origin.
        pin: its name.
    """
    causes = causes_shown_by(pin)
    if finding.cause in causes:
        return finding.cause
    # No op was found, so none that had another number of threads.
    if finding.origin.entry == OriginKind.NONE and Cause.NONDETERMINISTIC_KERNEL in causes:
        return Cause.NONDETERMINISTIC_KERNEL
    fitting = [cause for cause in causes if specification_of(cause).seen_as in (None, finding.origin.entry)]
    return (*fitting, *causes, Cause.UNKNOWN)[0]


def fixed_by(source: Source, pins: Pins) -> bool:
    """Whether one of some pins fixes what a source gives, as far as is known."""
    known = _of_row(source.cause, source.op)
    return not known or not set(known).isdisjoint(pins)


def pins_of(source: Source) -> Pins:
    """The pins that fix what a source gives, by the table of remedies."""
    return _of_row(source.cause, source.op)


def _choices(finding: Finding) -> tuple[Pins, ...]:
    """Sets of pins for one finding: of the sources that differed, of its cause, of its entry."""
    by_source = _of_sources(finding)
    by_cause = [pins for source in _ranked(finding) for pins in specification_of(source.cause).pins]
    known = specification_of(finding.cause).pins
    sets = (*by_source, *known, *by_cause, *_BY_ENTRY[finding.origin.entry])
    return tuple(dict.fromkeys(pins for pins in sets if pins))


def _ranked(finding: Finding) -> list[Source]:
    return sorted(finding.origin.sources, key=lambda source: source.cause != finding.cause)


def _of_sources(finding: Finding) -> list[Pins]:
    return [_of_row(source.cause, source.op) for source in _ranked(finding)]


def _of_row(cause: Cause, op: str) -> Pins:
    advice = specification_of(cause).advice_for(op)
    return () if advice is None else advice.controls


def _merged(sets: Iterable[Pins]) -> Pins:
    return tuple(dict.fromkeys(pin for pins in sets for pin in pins))
