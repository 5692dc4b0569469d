"""How many data files of a run have no digest, and why, in words: for the end of a run, and for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.environment.snapshot import fact_at
from samebits.environment.unread import WhyUnread, unread_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

REASONS = {
    WhyUnread.SKIPPED: "skipped with Ctrl-C",
    WhyUnread.GONE: "gone at the end of the run",
    WhyUnread.DENIED: "not to be read by this user",
    WhyUnread.CHANGED: "changed after the run had opened it",
    WhyUnread.FAILED: "an error when it was read",
    WhyUnread.UNTOLD: "the record does not say why",
}
"""Why a data file has no digest."""


def unread_text(environment: Mapping[str, Any]) -> str:
    """Return how many data files of a run have no digest, with the reasons; empty if all have one.

    Args:
        environment: of its record, which may hold anything.
    """
    counts = unread_in(fact_at(environment, "data")).counts
    total = sum(counts.values())
    if not total:
        return ""
    what = "1 data file has" if total == 1 else f"{total:,} data files have"
    if len(counts) == 1:
        return f"{what} no digest ({REASONS[next(iter(counts))]})"
    return f"{what} no digest ({', '.join(f'{number:,} {REASONS[why]}' for why, number in counts.items())})"
