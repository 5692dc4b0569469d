"""Recognises the same event in two runs."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.comparison._sites import is_paired, site_key
from samebits.comparison.ops import decisive_tensors, positions
from samebits.recording.state_equality import NUMBER
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from samebits.records.events import Event, TensorInfo


class Keys(NamedTuple):
    """The keys of an event, from the strictest to the loosest.

    Args:
        whole: with arguments and all digests but those of what an op overwrites: the same event with the
            same contents.
        given: with the arguments and the digests of what an op read; `whole` where it read nothing.
        shaped: with dtypes and shapes.
        loose: only the location in the program.
        bare: the same without a line of code that is not the same in both runs, which may do in one line what
            the other version does in several.
    """

    whole: int
    given: int
    shaped: int
    loose: int
    bare: int


class Keyer:
    """Makes the keys of events, from the loosest to the strictest.

    The keys of one process can be compared with one another; they mean nothing in another process.

    Args:
        numbered: whether the number that tells models of one class apart (`Linear#2`) is part of a key. It is
            chance where several threads make models.
    """

    def __init__(self, *, numbered: bool = True) -> None:
        self._numbered = numbered
        # Records give the same tuple object for the same layout: hash it once. The object is kept with
        # its hash so that its id is not reused.
        self._layouts: dict[int, tuple[object, int]] = {}
        self._sites: dict[int, tuple[object, Any]] = {}

    def loose(self, event: Event) -> int:
        """Return the key of a location in the program: kind, op, site, forward site and module."""
        site, forward = (_once(self._sites, site, site_key) for site in (event.site, event.forward_site))
        return hash((event.kind, event.op, site, forward, self._module(event)))

    def keys(self, event: Event) -> Keys:
        """Return all keys of an event."""
        loose = self.loose(event)
        bare = self._bare(event, loose)
        shaped = hash((loose, _once(self._layouts, event.tensors, _layout)))
        if event.kind != EventKind.OP:
            whole = hash((shaped, event.arguments, event.digests))
            return Keys(whole, whole, shaped, loose, bare)
        digests = event.digests
        read = tuple([digests[i] for i in decisive_tensors(event)])
        made = tuple([digests[i] for i in positions(event, Role.OUT)])
        whole = hash((shaped, event.arguments, read, made))
        given_key = hash((shaped, event.arguments, read)) if read else whole
        return Keys(whole, given_key, shaped, loose, bare)

    def _bare(self, event: Event, loose: int) -> int:
        if not (is_paired(event.site) or is_paired(event.forward_site)):
            return loose
        sites = [
            None if is_paired(site) else _once(self._sites, site, site_key)
            for site in (event.site, event.forward_site)
        ]
        return hash((event.kind, event.op, *sites, self._module(event)))

    def _module(self, event: Event) -> str:
        return event.module if self._numbered else NUMBER.sub("", event.module)


def _layout(tensors: tuple[TensorInfo, ...]) -> int:
    return hash(tuple([(t.role, t.name, t.dtype, t.shape) for t in tensors]))


def _once(cache: dict[int, tuple[object, Any]], value: Any, make: Callable[[Any], Any]) -> Any:
    entry = cache.get(id(value))
    if entry is None:
        if len(cache) > 1 << 16:  # a record whose layouts are not shared
            cache.clear()
        entry = cache[id(value)] = (value, make(value))
    return entry[1]


Pairs = list[tuple[int, int]]
_SMALL = 40_000  # cells of the exact table


def align(a: Sequence[int], b: Sequence[int], *, anchors_only: bool = False) -> Pairs:
    """Match equal keys of two sequences in order.

    Common beginnings and ends are matched, then keys that occur once in both (patience), then what is left
    between those: exactly where that is small, else the k-th occurrence of a key with the k-th.

    Args:
        a: keys of one stream.
        b: keys of the other.
        anchors_only: leave stretches without unique keys unmatched.

    Returns:
        (index in `a`, index in `b`), increasing in both.
    """
    pairs: Pairs = []
    pending = [(0, len(a), 0, len(b))]
    while pending:
        a0, a1, b0, b1 = _trim(a, b, pending.pop(), pairs)
        if a0 == a1 or b0 == b1:
            continue
        anchors = _unique_anchors(a, b, (a0, a1, b0, b1))
        if anchors:
            pairs += anchors
            pending += _gaps(anchors, (a0, a1, b0, b1))
        elif not anchors_only:
            pairs += _by_occurrence(a, b, (a0, a1, b0, b1))
    return sorted(pairs)


def align_levels(a: Sequence[tuple[int, ...]], b: Sequence[tuple[int, ...]]) -> Pairs:
    """Match two sequences of key tuples, by the strictest key first, then within the gaps by the next.

    Args:
        a: keys of one stream, each from the strictest to the loosest.
        b: keys of the other.
    """
    if not a or not b:
        return []
    pairs: Pairs = []
    for level in range(len(a[0])):
        finer: Pairs = []
        for a0, a1, b0, b1 in _gaps(pairs, (0, len(a), 0, len(b))):
            inside = align(
                [keys[level] for keys in a[a0:a1]],
                [keys[level] for keys in b[b0:b1]],
                anchors_only=level == 0,
            )
            finer += [(a0 + i, b0 + j) for i, j in inside]
        pairs = sorted(pairs + finer)
    return pairs


@dataclass
class Stream:
    """The events of one run in some steps, as keys.

    Args:
        seqs: their numbers.
        keys: their keys.
        threads: their threads.
        index: position by number.
    """

    seqs: list[int] = field(default_factory=list)
    keys: list[Keys] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    index: dict[int, int] = field(default_factory=dict)

    def add(self, event: Event, keyer: Keyer) -> None:
        """Append an event."""
        self.index[event.seq] = len(self.seqs)
        self.seqs.append(event.seq)
        self.keys.append(keyer.keys(event))
        self.threads.append(event.thread)


@dataclass(frozen=True)
class Alignment:
    """The events of two runs, matched.

    Args:
        a: stream of the first run.
        b: stream of the second.
        to_b: number in the first run to number in the second.
        to_a: the other way.
    """

    a: Stream
    b: Stream
    to_b: dict[int, int]
    to_a: dict[int, int]

    def mirrored(self) -> Alignment:
        """Return the same alignment with the runs exchanged."""
        return Alignment(self.b, self.a, self.to_a, self.to_b)


def align_events(a: Iterable[Event], b: Iterable[Event], keyer: Keyer | None = None) -> Alignment:
    """Align the events of two runs.

    Events with the same contents are matched first, then ops that read the same, in any order and thread: a
    difference cannot pass through the former, and begins at the latter. The rest is aligned in order, first
    within each thread, then across threads, which may have divided the work differently.
    """
    keyer = keyer or Keyer()
    first, second = Stream(), Stream()
    for stream, events in ((first, a), (second, b)):
        for event in events:
            stream.add(event, keyer)
    left = _Unmatched(first, second)
    left.match_anywhere(lambda keys: keys.whole)
    left.match_anywhere(lambda keys: keys.given)
    for thread in sorted({*first.threads}):
        for _ in range(2):  # what did not fit between the events matched before may fit among the rest
            left.match_in_order(lambda name, thread=thread: name == thread)  # type: ignore[misc]
    left.match_in_order(bool)
    to_b = {first.seqs[i]: second.seqs[j] for i, j in left.pairs.items()}
    return Alignment(first, second, to_b, {seq_b: seq_a for seq_a, seq_b in to_b.items()})


class _Unmatched:
    """The events of two streams that are still to be matched.

    Args:
        a: the first.
        b: the second.
    """

    def __init__(self, a: Stream, b: Stream) -> None:
        self._streams = a, b
        several = any(keys.bare != keys.loose for stream in (a, b) for keys in stream.keys)
        self._levels = 5 if several else 4
        self._rows = list(range(len(a.seqs))), list(range(len(b.seqs)))
        self.pairs: dict[int, int] = {}

    def match_anywhere(self, key: Callable[[Keys], int]) -> None:
        """Match the k-th event with a key with the k-th that has it in the other stream."""
        a, b = self._streams
        rows: dict[int, deque[int]] = defaultdict(deque)
        for j in self._rows[1]:
            rows[key(b.keys[j])].append(j)
        pairs = {}
        for i in self._rows[0]:
            waiting = rows.get(key(a.keys[i]))
            if waiting:
                pairs[i] = waiting.popleft()
        self._take(pairs)

    def match_in_order(self, wanted: Callable[[str], bool]) -> None:
        """Align the events of some threads by shape and location, in order.

        The pairs so far say between which events the others lie; but a log line that one run wrote earlier
        than the other misleads. So the alignment is made with and without them, and the one that matches more
        counts. Events of changed code that have no line in common are aligned last, without their lines.
        """
        a, b = self._streams
        rows_a = [i for i in self._rows[0] if wanted(a.threads[i])]
        rows_b = [j for j in self._rows[1] if wanted(b.threads[j])]
        pairs = sorted(p for p in self.pairs.items() if wanted(a.threads[p[0]]) and wanted(b.threads[p[1]]))
        between = self._within(rows_a, rows_b, _increasing(pairs))
        anywhere = self._within(rows_a, rows_b, []) if pairs else {}
        self._take(anywhere if len(anywhere) > len(between) else between)

    def _within(self, rows_a: list[int], rows_b: list[int], anchors: Pairs) -> dict[int, int]:
        """Align rows of both streams in the gaps between anchors."""
        a, b = self._streams
        matched = {}
        for a0, a1, b0, b1 in _gaps(anchors, (0, len(a.seqs), 0, len(b.seqs))):
            inside_a = rows_a[bisect_left(rows_a, a0) : bisect_left(rows_a, a1)]
            inside_b = rows_b[bisect_left(rows_b, b0) : bisect_left(rows_b, b1)]
            end = self._levels
            pairs = align_levels([a.keys[i][2:end] for i in inside_a], [b.keys[j][2:end] for j in inside_b])
            matched.update({inside_a[i]: inside_b[j] for i, j in pairs})
        return matched

    def _take(self, pairs: dict[int, int]) -> None:
        self.pairs.update(pairs)
        taken = set(pairs.values())
        rows_a, rows_b = self._rows
        self._rows = [i for i in rows_a if i not in pairs], [j for j in rows_b if j not in taken]


def _trim(
    a: Sequence[int], b: Sequence[int], window: tuple[int, int, int, int], pairs: Pairs
) -> tuple[int, int, int, int]:
    a0, a1, b0, b1 = window
    while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
        pairs.append((a0, b0))
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
        pairs.append((a1, b1))
    return a0, a1, b0, b1


def _unique_anchors(a: Sequence[int], b: Sequence[int], window: tuple[int, int, int, int]) -> Pairs:
    a0, a1, b0, b1 = window
    rows_a, rows_b = _unique(a, a0, a1), _unique(b, b0, b1)
    return _increasing([(i, rows_b[key]) for key, i in rows_a.items() if key in rows_b])


def _unique(keys: Sequence[int], start: int, end: int) -> dict[int, int]:
    """Return the keys that occur once in a stretch, in order, with their rows."""
    rows: dict[int, int] = {}
    repeated = set()
    for i in range(start, end):
        if keys[i] in rows:
            repeated.add(keys[i])
        rows[keys[i]] = i
    return {key: i for key, i in rows.items() if key not in repeated}


def _by_occurrence(a: Sequence[int], b: Sequence[int], window: tuple[int, int, int, int]) -> Pairs:
    a0, a1, b0, b1 = window
    if (a1 - a0) * (b1 - b0) <= _SMALL:
        return _longest_common(a, b, window)
    rows: dict[tuple[int, int], int] = {}
    count: Counter[int] = Counter()
    for j in range(b0, b1):
        rows[b[j], count[b[j]]] = j
        count[b[j]] += 1
    count.clear()
    candidates: Pairs = []
    for i in range(a0, a1):
        j_or_none = rows.get((a[i], count[a[i]]))
        count[a[i]] += 1
        if j_or_none is not None:
            candidates.append((i, j_or_none))
    return _increasing(candidates)


def _longest_common(a: Sequence[int], b: Sequence[int], window: tuple[int, int, int, int]) -> Pairs:
    """Return a longest common subsequence; of several, the one that matches earliest."""
    a0, a1, b0, b1 = window
    width = b1 - b0
    lengths = [[0] * (width + 1) for _ in range(a1 - a0 + 1)]
    for i in range(a1 - a0 - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        for j in range(width - 1, -1, -1):
            row[j] = below[j + 1] + 1 if a[a0 + i] == b[b0 + j] else max(below[j], row[j + 1])
    pairs: Pairs = []
    i = j = 0
    while i < a1 - a0 and j < width:
        if a[a0 + i] == b[b0 + j]:
            pairs.append((a0 + i, b0 + j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _increasing(pairs: Pairs) -> Pairs:
    """Return the longest subsequence of pairs, sorted by first member, that increases in the second."""
    tails: list[int] = []  # smallest last member of an increasing part of each length
    ends: list[int] = []  # the index of that pair
    before: list[int] = []  # the pair before each pair in its part
    for position, (_, second) in enumerate(pairs):
        length = bisect_left(tails, second)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(second)
            ends.append(position)
        else:
            tails[length] = second
            ends[length] = position
    chosen: Pairs = []
    position = ends[-1] if ends else -1
    while position >= 0:
        chosen.append(pairs[position])
        position = before[position]
    return chosen[::-1]


def _gaps(pairs: Pairs, window: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """Return the stretches between pairs in which both sides have something."""
    a0, a1, b0, b1 = window
    gaps = []
    for i, j in [*pairs, (a1, b1)]:
        if a0 < i and b0 < j:
            gaps.append((a0, i, b0, j))
        a0, b0 = i + 1, j + 1
    return gaps
