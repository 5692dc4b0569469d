"""Which pins may make runs identical, by what is known of where they part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.diagnosis.remedy_table import row_for

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
_BY_CAUSE: dict[str, tuple[Pins, ...]] = {
    "unseeded-torch": (("seed-torch",),),
    "unseeded-numpy": (("seed-numpy",),),
    "unseeded-python": (("seed-python",),),
    "os-entropy": (("entropy",),),
    "wall-clock": (("clock",),),
    "hash-order": (("hash-seed",),),
    "id-order": (("layout",),),
    "nondeterministic-kernel": (("deterministic",), ("threads",)),
    "race": (("completion",), ("serial-threads",), ("serial-processes",), ("threads",)),
    "worker-order": (("workers",), ("completion",)),
    "uninitialized": (("fill",),),
    "environment": (("process",), ("listing",), ("file-times",), ("memory-load",), ("inodes",), ("ports",)),
    "thread-count": (("threads",), ("thread-calls",)),
    "autotuning": (("autotuning",), ("clock",), ("eager",)),
}
_MOST_FINDINGS = 3
_FACTS = ("process", "listing", "file-times", "memory-load", "inodes", "ports")
# What no draw shows: hashes, addresses, and facts that a script reads out of files such as /proc/meminfo.
_UNSEEN: tuple[Pins, ...] = (("hash-seed",), ("layout",), _FACTS)
_SHARED = ("serial-processes",)  # memory that other processes write
# Where a difference came in without a known cause.
_BY_ENTRY: dict[str, tuple[Pins, ...]] = {
    "": (("deterministic",), ("threads",), ("eager",)),  # no op was found: compiled code has none to look at
    "kernel": (("deterministic",), ("threads",)),
    "rng": (("seed-torch",),),
    "uninitialized": (("fill",),),
    "order": (("hash-seed",), ("layout",), ("completion",), ("serial-threads",)),
    "argument": _UNSEEN,
    "outside": (*_UNSEEN, _SHARED),
    "control-flow": _UNSEEN,
    "batch": (*_UNSEEN, ("workers",), ("fill",)),
}
_KERNEL = "nondeterministic-kernel"
_SHARED_BY_ENTRY = {_KERNEL: "kernel", "uninitialized": "uninitialized"}


def likely_pins(findings: Iterable[Finding]) -> tuple[Pins, ...]:
    """Sets of pins that the evidence suggests, the likeliest first.

    Where there are several findings, the first sets hold a pin for each; findings whose cause is known come
    before the others. The last sets hold a pin for each source that was seen at one finding.

    Args:
        findings: the origins, the first one first.
    """
    ranked = sorted(findings, key=lambda finding: finding.cause == "unknown")
    choices = [sets for sets in map(_choices, ranked) if sets]
    together = _merged(sets[0] for sets in choices)
    # Behind the first origin the order of a batch and what is in it may come from one generator each.
    sources = [_merged(_of_sources(finding)) for finding in ranked if finding.cause == "unknown"]
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


def cause_of_pins(finding: Finding, causes: Iterable[str]) -> str:
    """The cause that is shown by a pin that made the runs identical.

    Args:
        finding: the origin.
        causes: the causes that the pin is evidence for, the likeliest first.
    """
    listed = list(causes)
    if finding.cause in listed:
        return finding.cause
    if not finding.entry and _KERNEL in listed:  # no op was found, so none that had another number of threads
        return _KERNEL
    fitting = [cause for cause in listed if _SHARED_BY_ENTRY.get(cause, finding.entry) == finding.entry]
    return (fitting or listed or ["unknown"])[0]


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
    by_cause = [pins for source in _ranked(finding) for pins in _BY_CAUSE.get(source.cause, ())]
    known = _BY_CAUSE.get(finding.cause, ())
    sets = (*by_source, *known, *by_cause, *_BY_ENTRY.get(finding.entry, ()))
    return tuple(dict.fromkeys(pins for pins in sets if pins))


def _ranked(finding: Finding) -> list[Source]:
    return sorted(finding.sources, key=lambda source: source.cause != finding.cause)


def _of_sources(finding: Finding) -> list[Pins]:
    return [_of_row(source.cause, source.op) for source in _ranked(finding)]


def _of_row(cause: str, op: str) -> Pins:
    row = row_for(cause, op)
    return () if row is None else row.controls


def _merged(sets: Iterable[Pins]) -> Pins:
    return tuple(dict.fromkeys(pin for pins in sets for pin in pins))
