"""Values that leave torch or enter it (reads, saves, batches, losses) in one step, matched site by site."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits.comparison._alignment import align, site_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.records.events import Event
    from samebits.records.kinds import EventKind

    OnlyMoved = Callable[["Key", "tuple[Column, Column]"], bool]

_WIDTH = 16
Key = tuple["EventKind", str, Any]


def key_of(event: Event) -> Key:
    """Return the kind, op and site that the values of one column have in common."""
    return event.kind, event.op, site_key(event.site)


class Column:
    """The values of one site in order, 24 bytes each: a step may hold a million reads."""

    def __init__(self) -> None:
        self.seqs = array("q")
        self._digests = bytearray()
        self.threads: set[str] = set()

    def __len__(self) -> int:
        return len(self.seqs)

    def add(self, event: Event) -> None:
        """Append an event."""
        self.seqs.append(event.seq)
        self.threads.add(event.thread)
        single = event.digests[0] if len(event.digests) == 1 else b""
        if len(single) != _WIDTH:
            single = hashlib.blake2b(b"".join(event.digests), digest_size=_WIDTH).digest()
        self._digests += single

    def extend(self, other: Column) -> None:
        """Append the values of another column."""
        self.seqs.extend(other.seqs)
        self.threads |= other.threads
        self._digests += other._digests

    def contents(self) -> bytes:
        """Return all digests, one after the other."""
        return bytes(self._digests)

    def digest(self, row: int) -> bytes:
        """Return the digest of one value."""
        return bytes(self._digests[_WIDTH * row : _WIDTH * (row + 1)])

    def digests(self) -> list[bytes]:
        """Return the digests of all values."""
        return [self.digest(row) for row in range(len(self))]


class Table:
    """The values of one step, by kind, op and site."""

    def __init__(self) -> None:
        self.columns: dict[Key, Column] = {}

    def add(self, event: Event) -> None:
        """Append an event."""
        key = key_of(event)
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = Column()
        column.add(event)

    def absorb(self, other: Table) -> None:
        """Append the values of another table, which came later."""
        for key, column in other.columns.items():
            self.columns.setdefault(key, Column()).extend(column)


@dataclass
class TableDifference:
    """The differences between two tables.

    Args:
        differing: (seq in a, seq in b) of the first values at each site that differ.
        keys: the sites of these.
        extra: by site, how many values only each run has (first run, second run).
        loose: (seq in a, seq in b) of the first values without a counterpart, where both runs have some.
        matched: digests of the values that both runs have, for the final digest.
        whole_sites: how many sites gave the same number of values in both runs.
    """

    differing: list[tuple[int, int]] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    extra: dict[Key, tuple[int, int]] = field(default_factory=dict)
    loose: list[tuple[int, int]] = field(default_factory=list)
    matched: bytes = b""
    whole_sites: int = 0


def compare_tables(a: Table, b: Table, only_moved: OnlyMoved | None = None) -> TableDifference:
    """Match the values of two runs, site by site and in order.

    Where a site gave the same number of values, the k-th is compared with the k-th; values of several threads
    are compared in any order. Where the numbers differ, values are matched by their digest, and the rest is
    extra.

    Args:
        a: the table of the first run.
        b: the table of the second run.
        only_moved: tells whether unequal columns are no difference; those are left out.
    """
    difference = TableDifference()
    for key in [*a.columns, *(key for key in b.columns if key not in a.columns)]:
        first, second = a.columns.get(key, Column()), b.columns.get(key, Column())
        same = first.contents() == second.contents()
        if not same and only_moved is not None and only_moved(key, (first, second)):
            continue
        if len(first) == len(second):
            difference.whole_sites += 1
            unequal = list(_first_unequal(first, second))
            difference.differing += unequal
            difference.keys += [key] * len(unequal)
            difference.matched += first.contents()
        else:
            _match_unequal_numbers(key, first, second, difference)
    return difference


def _first_unequal(a: Column, b: Column) -> Iterator[tuple[int, int]]:
    if a.contents() == b.contents():
        return
    if len(a.threads | b.threads) > 1:
        rows = _unordered_difference(a, b)
    else:
        rows = next(((i, i) for i in range(len(a)) if a.digest(i) != b.digest(i)), None)
    if rows is not None:
        yield a.seqs[rows[0]], b.seqs[rows[1]]


def _unordered_difference(a: Column, b: Column) -> tuple[int, int] | None:
    in_a, in_b = a.digests(), b.digests()
    only_a, only_b = Counter(in_a) - Counter(in_b), Counter(in_b) - Counter(in_a)
    if not only_a:
        return None
    return (
        next(i for i, digest in enumerate(in_a) if digest in only_a),
        next(j for j, digest in enumerate(in_b) if digest in only_b),
    )


def _match_unequal_numbers(key: Key, a: Column, b: Column, difference: TableDifference) -> None:
    numbers: dict[bytes, int] = {}
    codes_a, codes_b = ([numbers.setdefault(d, len(numbers)) for d in c.digests()] for c in (a, b))
    pairs = align(codes_a, codes_b)
    difference.extra[key] = (len(a) - len(pairs), len(b) - len(pairs))
    difference.matched += b"".join(a.digest(i) for i, _ in pairs)
    if min(difference.extra[key]):
        rows_a, rows_b = {i for i, _ in pairs}, {j for _, j in pairs}
        i = next(i for i in range(len(a)) if i not in rows_a)
        j = next(j for j in range(len(b)) if j not in rows_b)
        difference.loose.append((a.seqs[i], b.seqs[j]))
