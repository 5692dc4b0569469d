"""Finds the lines of one version of the code in another, by what they did when they ran.

Texts are not needed, which are often gone. What a line does tells more: the operations it runs, in which
module, and their contents, which are the same in both runs up to the first difference. Within a function,
lines keep their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits.comparison._alignment import align

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from samebits._runtime.frames import Site
    from samebits.records.events import Event

    Group = tuple[str, str]  # code by its name, and function
    Groups = dict[Group, list["Line"]]

_LOOKED_AT = 64  # events of one line
_MOST_EVENTS = 1_000_000  # of one run
_SMALL = 40_000  # pairs of lines of two functions that are weighed against each other
_LEAST = 0.75  # likeness of lines in two functions


@dataclass
class Line:
    """A line, and what its first events did.

    Args:
        site: the line.
        ops: kind and op of each.
        acts: the same with the module.
        contents: the same with arguments and all digests.
        count: of these events.
    """

    site: Site
    ops: Counter[int] = field(default_factory=Counter)
    acts: Counter[int] = field(default_factory=Counter)
    contents: Counter[int] = field(default_factory=Counter)
    count: int = 0

    def add(self, event: Event, *, forward: bool) -> None:
        """Take in an event of the line, or one of the backward pass that the line is the forward of."""
        self.count += 1
        op = event.kind, event.op, forward
        self.ops[hash(op)] += 1
        self.acts[hash((op, event.module))] += 1
        self.contents[hash((op, event.arguments, event.digests))] += 1


def lines_of(events: Iterable[Event], name_of: Callable[[Site], str]) -> Groups:
    """Return the lines that made events, by function and from top to bottom.

    Args:
        events: of one run.
        name_of: gives the code that a site is in; empty for one that is the same in both runs.
    """
    lines: dict[Site, Line | None] = {}
    groups: Groups = defaultdict(list)
    for count, event in enumerate(events):
        if count >= _MOST_EVENTS:
            break
        for site, forward in ((event.site, False), (event.forward_site, True)):
            if site is None:
                continue
            if site not in lines:
                name = name_of(site)
                lines[site] = Line(site) if name else None
                if name:
                    groups[name, site.function].append(lines[site])  # type: ignore[arg-type]
            line = lines[site]
            if line is not None and line.count < _LOOKED_AT:
                line.add(event, forward=forward)
    for listed in groups.values():
        listed.sort(key=lambda line: line.site.line)
    return groups


def paired_lines(a: Groups, b: Groups) -> dict[Site, Site]:
    """Return the line of the first run that each line of the second stands for, as far as there is one.

    Args:
        a: lines of the first run.
        b: lines of the second.
    """
    found: dict[Site, Site] = {}
    left_a, left_b = dict(a), dict(b)
    for group in a.keys() & b.keys():
        _take(left_a, left_b, (group, group), found, 0.0)
    totals: dict[tuple[Group, Group], float] = {}
    while True:  # what has no line in its own function: it was renamed, or the line was moved
        for ours, lines_a in left_a.items():
            for theirs, lines_b in left_b.items():
                if (ours, theirs) not in totals:
                    totals[ours, theirs] = _paired(lines_a, lines_b, _LEAST)[1]
        best = max(totals, key=lambda pair: (totals[pair], pair), default=None)
        if best is None or not totals[best]:
            return found
        _take(left_a, left_b, best, found, _LEAST)
        totals = {pair: total for pair, total in totals.items() if pair[0] != best[0] and pair[1] != best[1]}


def _take(
    left_a: Groups, left_b: Groups, groups: tuple[Group, Group], found: dict[Site, Site], least: float
) -> None:
    """Pair the lines of two functions, and leave those without a partner."""
    ours, theirs = groups
    pairs, _ = _paired(left_a[ours], left_b[theirs], least)
    found.update({b.site: a.site for a, b in pairs})
    taken_a, taken_b = {a.site for a, _ in pairs}, {b.site for _, b in pairs}
    left_a[ours] = [line for line in left_a[ours] if line.site not in taken_a]
    left_b[theirs] = [line for line in left_b[theirs] if line.site not in taken_b]


def _paired(a: Sequence[Line], b: Sequence[Line], least: float) -> tuple[list[tuple[Line, Line]], float]:
    """Return the pairs of lines, in order, that are together most alike, and how much that is."""
    if len(a) * len(b) > _SMALL:
        keys_a, keys_b = ([hash(frozenset(line.acts)) for line in lines] for lines in (a, b))
        pairs = [(a[i], b[j]) for i, j in align(keys_a, keys_b)]
        return pairs, float(len(pairs))
    likeness = [[_likeness(x, y, least) for y in b] for x in a]
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            both = likeness[i][j] + best[i + 1][j + 1]
            best[i][j] = max(both, best[i + 1][j], best[i][j + 1])
    return [(a[i], b[j]) for i, j in _way(likeness, best)], best[0][0]


def _way(likeness: list[list[float]], best: list[list[float]]) -> Iterable[tuple[int, int]]:
    """Yield the pairs that give the best total; of several ways, those that come earliest."""
    i = j = 0
    while i < len(likeness) and j < len(likeness[0]):
        if likeness[i][j] and best[i][j] == likeness[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def _likeness(a: Line, b: Line, least: float) -> float:
    """Return how alike two lines are: 0 for lines that do nothing alike, 4 for what is the same."""
    ops = _share(a.ops, b.ops)
    if not ops:
        return 0.0
    total = ops + _share(a.acts, b.acts) + 2 * _share(a.contents, b.contents)
    return total if total >= least else 0.0


def _share(a: Counter[int], b: Counter[int]) -> float:
    common = sum(min(n, b[key]) for key, n in a.items() if key in b)
    return common / max(a.total(), b.total()) if common else 0.0
