"""Which values from outside torch differed before two runs parted, where no operation can be blamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.draw_pairs import differing_draws
from samebits.comparison.keys import site_key
from samebits.comparison.threads import survey_runs

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.comparison.results import Source
    from samebits.comparison.sources import Record

MOST_SOURCES = 12


def draws_before(a: Record, b: Record, excused: Collection[str] = ()) -> tuple[Source, ...]:
    """The sources whose draws differ up to the first step with a difference, the last drawn first.

    Sources that gave other values in earlier steps too, whose results were the same, come behind the others.

    Args:
        a: the first record, of any level.
        b: the second.
        excused: names of state tensors that are left out.
    """
    found = survey_runs(a, b, excused, to_first=True)
    last = (a.info.steps, b.info.steps) if found.first is None else (found.first.a.last, found.first.b.last)
    pairs = differing_draws((a, b), found.first_span, last)
    first = found.first.a.first if found.first is not None and not found.several_threads else 0
    early = {(pair.a.op, site_key(pair.a.site)) for pair in pairs if pair.a.step < first}
    sources: dict[object, Source] = {}
    for pair in sorted(pairs, key=lambda pair: -pair.a.seq):
        source = pair.source
        sources.setdefault((pair.a.op, site_key(pair.a.site)), source)
    ranked = sorted(sources, key=lambda key: key in early)
    return tuple(sources[key] for key in ranked[:MOST_SOURCES])
