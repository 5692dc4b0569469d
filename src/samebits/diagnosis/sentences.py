"""Why two runs differ, in one sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits.comparison.results import place

if TYPE_CHECKING:
    from samebits.comparison.results import Finding, Source

_LIBRARIES = {"unseeded-python": "Python", "unseeded-numpy": "NumPy", "unseeded-torch": "torch"}
_FRESH = re.compile(r"random\.(Random|seed)|numpy\.random\.SeedSequence|torch\.Generator\.seed")
# What is said of these is what the line of the draw did, wherever the value went.
_DRAWN = (*_LIBRARIES, "os-entropy", "wall-clock", "uninitialized", "environment")
_SIMPLE = {
    "hash-order": "depends on Python's hash seed: on hash() of text, or on the order of a set",
    "id-order": "depends on the addresses of objects: on id(), a default repr or hash, or the order of a set",
    "worker-order": "depends on which worker of the loader came first",
    "thread-count": "depends on the number of threads",
    "autotuning": "depends on a choice that was made by timing",
}
_BY_ENTRY = {
    "control-flow": "is where the runs begin to do different things",
    "argument": "gave an operation another number",
    "outside": "brought in a value that is not the same",
    "batch": "took another batch from the loader",
    "order": "ran operations in another order, or took another tensor",
    "rng": "drew from a generator that was in another state",
    "kernel": "ran an operation that gave other bits for the same inputs",
}


def why(finding: Finding) -> str:
    """The line, what it did, and which pairs of runs show that this is the reason.

    Args:
        finding: an origin.
    """
    source = _source(finding)
    drawn = source.site if source is not None and finding.cause in _DRAWN else None
    where = place(drawn or finding.site) if drawn or finding.site else "code outside any line of Python"
    reached = f", and it reached {place(finding.site)}" if drawn and drawn != finding.site else ""
    step = "" if finding.step is None else f"step {finding.step}: "
    shown = f"; {finding.confirmed_by}" if finding.confirmed_by else ""
    return f"{step}{where} {_what(finding, source)}{reached}{shown}"


def _what(finding: Finding, known: Source | None) -> str:
    """What the line did, from the cause and what gave the evidence."""
    cause, source = finding.cause, known.op if known is not None else ""
    if known is not None and known.is_left_file:
        return f"read what the run before had written ({source})"
    if cause in _LIBRARIES:
        return _seeding(finding, cause, source)
    if cause in _SIMPLE:
        return _SIMPLE[cause]
    named = f" ({source})" if source else ""
    words = {
        "os-entropy": f"took entropy of the operating system{named}",
        "wall-clock": f"read the clock{named}",
        "race": f"depends on which thread or process came first{named}",
        "environment": f"depends on a fact of this process or machine{named}",
        "uninitialized": f"took memory that was read before it was written ({source or finding.op})",
        "nondeterministic-kernel": f"ran {finding.op}, which gave other bits for the same inputs",
    }
    if cause == "nondeterministic-kernel" and not finding.entry:  # no op was found, so none is named
        return "is where results of kernels that are not recorded one by one first differ"
    return words.get(cause) or _BY_ENTRY.get(finding.entry, "is where the runs part")


def _seeding(finding: Finding, cause: str, source: str) -> str:
    library = _LIBRARIES[cause]
    if _FRESH.match(source):
        return f"made a generator of {library}'s without a seed of its own ({source})"
    if finding.kind == "rng" and finding.op == "seed":
        return f"gave {library}'s generator another seed in each run"
    return f"drew from {library}'s global generator, which nothing seeds"


def _source(finding: Finding) -> Source | None:
    return next((source for source in finding.sources if source.cause == finding.cause), None)
