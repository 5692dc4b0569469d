"""Which names of two programs stand for one tensor: equal names, or equal contents and shapes in order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from samebits.comparison._alignment import align
from samebits.comparison.programs.outcome import STATE, How, Matched, Name, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from samebits.comparison.lookup import Record
    from samebits.comparison.programs._series import Named
    from samebits.records.events import TensorInfo

_MOST_CELLS = 2_500
_MATCHED = 0.01  # a match of two tensors that have nothing in common is better than none
_IN_ORDER = frozenset({Source.TAP, Source.MODULE})


def first_out_of_order(a: Named, b: Named) -> tuple[Name, Name] | None:
    """Return the first common tap or module that b has in another order, and what b has there instead."""
    ours = [name for name in a if name in b and name.source in _IN_ORDER]
    theirs = [name for name in b if name in a and name.source in _IN_ORDER]
    return next(((x, y) for x, y in zip(ours, theirs, strict=True) if x != y), None)


def match_others(
    a: Named, b: Named, records: tuple[Record, Record], like: Callable[[Name, Name], float]
) -> tuple[Matched, ...]:
    """Match the names that only one program has, in order.

    Tensors with equal contents at their first call come first. Between these, tensors of one shape are
    matched so that they are as like as possible; the order of the dimensions, and those of length 1, do not
    count, nor does the dtype.

    Args:
        a: the tensors of the first record, without what was matched by name.
        b: of the second.
        records: both.
        like: how like the first tensors of two names are, from 0 to 1.
    """
    ours, theirs = list(a), list(b)
    infos = [
        [series.place(name, 0, record).info for name, series in named.items()]
        for named, record in zip((a, b), records, strict=True)
    ]
    contents = align(*_numbered(_contents(a), _contents(b)))
    found = [Matched(ours[i], theirs[j], How.CONTENTS) for i, j in contents]
    shapes = _numbered(
        [_shape_key(name, info) for name, info in zip(ours, infos[0], strict=True)],
        [_shape_key(name, info) for name, info in zip(theirs, infos[1], strict=True)],
    )
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *contents, (len(ours), len(theirs))]):
        rows, columns = range(i + 1, next_i), range(j + 1, next_j)
        if len(rows) * len(columns) > _MOST_CELLS:
            between = [
                (rows[x], columns[y]) for x, y in align(shapes[0][i + 1 : next_i], shapes[1][j + 1 : next_j])
            ]
        else:
            between = _most_like(
                rows,
                columns,
                lambda x, y: like(ours[x], theirs[y]) if shapes[0][x] == shapes[1][y] else None,
            )
        found += [Matched(ours[x], theirs[y], How.SHAPE) for x, y in between]
    places = {name: place for place, name in enumerate(ours)}
    return tuple(sorted(found, key=lambda each: places[each.first]))


def _most_like(
    rows: range, columns: range, like: Callable[[int, int], float | None]
) -> list[tuple[int, int]]:
    """Match two sequences in order so that the sum of the likenesses is largest.

    Args:
        rows: the first sequence.
        columns: the second.
        like: of two members; None for two that must not be matched.
    """
    best = [[0.0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    taken = [[False] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    for x in reversed(range(len(rows))):
        for y in reversed(range(len(columns))):
            without = max(best[x + 1][y], best[x][y + 1])
            value = like(rows[x], columns[y])
            both = -1.0 if value is None else value + _MATCHED + best[x + 1][y + 1]
            taken[x][y] = both >= without
            best[x][y] = max(both, without)
    pairs, x, y = [], 0, 0
    while x < len(rows) and y < len(columns):
        if taken[x][y]:
            pairs.append((rows[x], columns[y]))
            x, y = x + 1, y + 1
        elif best[x + 1][y] >= best[x][y + 1]:
            x += 1
        else:
            y += 1
    return pairs


def _contents(named: Named) -> list[Hashable]:
    """Return the digest of the first tensor of each name; of one that could not be read, what equals none."""
    return [series.digest(0) if series.is_read(0) else object() for series in named.values()]


def _shape_key(name: Name, info: TensorInfo) -> Hashable:
    kind = name.source if name.source in STATE else "value"
    return kind, tuple(sorted(length for length in info.shape if length != 1))


def _numbered(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return a number for each key: the same for equal keys."""
    numbers: dict[Hashable, int] = {}
    ours, theirs = ([numbers.setdefault(key, len(numbers)) for key in keys] for keys in (a, b))
    return ours, theirs
