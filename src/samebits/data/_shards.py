"""Iterable datasets in shards: which lane a position reads from, and the elements of a lane in order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from samebits.data.permutation import Partition, permutation
from samebits.data.samplers import identity_of, order_key
from samebits.errors import SamebitsError
from samebits.rng.seeds import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENDLESS = 2**62
_MOST_TURNS, _MOST_PARTS = 4, 64


@runtime_checkable
class Sharded(Protocol):
    """**Protocol:** an iterable dataset that can be read from several places.

    Attributes:
        num_shards: how many parts it has.
    """

    num_shards: int

    def iter_shard(self, number: int) -> Any:
        """The elements of one part, from its beginning; the same ones each time.

        Args:
            number: from 0 to `num_shards - 1`.
        """


@dataclass(frozen=True, slots=True)
class Lanes:
    """How a global batch is put together: `parts` pieces, each from another lane, in `turns` sets of lanes.

    Batch `b` takes its piece `p` from lane `(b % turns) * parts + p`. So up to `parts` ranks and up to
    `turns` workers read no shard twice, and what a batch holds does not depend on how many there are.

    Args:
        parts: pieces of a global batch; divides it.
        turns: sets of lanes that take turns.
    """

    parts: int
    turns: int

    @classmethod
    def of(cls, given: Any, shards: int, global_batch: int) -> Lanes:
        """Check what was given; by default as many as there are shards for, up to 64 parts in 4 turns.

        Raises:
            SamebitsError: these are no lanes; `loader-option`.
        """
        if given is None:
            turns = min(shards, _MOST_TURNS)
            parts = range(1, min(shards // turns, _MOST_PARTS) + 1)
            return cls(max(number for number in parts if global_batch % number == 0), turns)
        whole = isinstance(given, (tuple, list)) and len(given) == 2
        if not whole or not all(type(number) is int and number > 0 for number in given):
            message = f"lanes is {given!r}; expected (parts, turns), two whole numbers from 1"
            raise SamebitsError(message, slug="loader-option")
        if global_batch % given[0]:
            message = f"lanes has {given[0]} parts, which do not divide the global batch of {global_batch}"
            raise SamebitsError(message, slug="loader-option")
        return cls(*given)

    @property
    def count(self) -> int:
        """How many lanes there are."""
        return self.parts * self.turns

    def pieces(self, start: int, stop: int, global_batch: int) -> Iterator[tuple[int, int, int]]:
        """The lanes that positions of one global batch read from.

        Returns:
            The lane, and the first place in it and the one after the last.
        """
        batch, size = start // global_batch, global_batch // self.parts
        first, last = start % global_batch, (stop - 1) % global_batch + 1
        for part in range(first // size, -(-last // size)):
            base = batch // self.turns * size
            low, high = max(first - part * size, 0), min(last - part * size, size)
            yield batch % self.turns * self.parts + part, base + low, base + high


@dataclass(frozen=True, slots=True)
class Endless(Partition):
    """The cut of an order whose length nobody knows; `size` counts shards."""

    @property
    def positions(self) -> int:
        """More than will be read."""
        return _ENDLESS // self.global_batch * self.global_batch

    @property
    def rest(self) -> int:
        """Not known."""
        return 0

    def lanes_of_rank(self, lanes: Lanes) -> frozenset[int]:
        """The lanes that this rank reads from."""
        starts = [self.part(batch) for batch in range(lanes.turns)]
        pieces = [lanes.pieces(start, stop, self.global_batch) for start, stop in starts if start < stop]
        return frozenset(lane for found in pieces for lane, _, _ in found)


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """In which order the elements of shards come.

    Args:
        shards: how many there are.
        lanes: which of them a batch reads.
        shuffle: shards are dealt to lanes in another order in every epoch.
        window: that many elements of a lane are shuffled together, from 1.
    """

    shards: int
    lanes: Lanes
    shuffle: bool
    window: int
    repeats = False

    def __len__(self) -> int:
        return self.shards

    def of_lane(self, lane: int, seed: int, epoch: int) -> list[int]:
        """The shards of a lane, in the order in which they are read."""
        places = range(lane, self.shards, self.lanes.count)
        if not self.shuffle:
            return list(places)
        order = permutation(self.shards, order_key(seed, epoch))
        return [order.at(place) for place in places]

    def in_window(self, lane: int, number: int, size: int, key: int) -> Any:
        """The order of the elements of a window."""
        return permutation(size, derive(key, "window", lane, number)).block(0, size)

    def identity(self) -> int:
        """Of everything in it."""
        numbers = (self.lanes.parts, self.lanes.turns, int(self.shuffle), self.window)
        return identity_of("shards", self.shards, *numbers)


class LaneReader:
    """Reads one lane of one epoch, forwards.

    Windows of elements are read whole and shuffled by a permutation of their own. So the order is a function
    of (seed, epoch, lane, window): a reader that begins later gives what one that began earlier would.

    Args:
        order: of the elements.
        lane: which one.
        seed: of the loader.
        epoch: from 0.
        produce: gives the next element of an iterator, under the key of (shard, number).
        open_shard: begins a shard.
    """

    def __init__(
        self,
        order: ShardOrder,
        lane: int,
        when: tuple[int, int],
        produce: Callable[[Any, int, int], Any],
        open_shard: Callable[[int], Any],
    ) -> None:
        seed, epoch = when
        self._order, self._lane = order, lane
        self._key = order_key(seed, epoch)
        self._elements = self._read(order.of_lane(lane, seed, epoch), produce, open_shard)
        self._window: list[Any] = []
        self._number = -1
        self._failed = False  # whether reading ended with an exception: the generator gives nothing more then
        self.ended = False

    def take(self, first: int, last: int) -> list[Any]:
        """The elements at those places of the lane; fewer where it ends.

        Args:
            first: not before the window of what was taken before.
            last: the place after the last.
        """
        found = []
        for place in range(first, last):
            self._go_to(place // self._order.window)
            inside = place % self._order.window
            if inside >= len(self._window):
                self.ended = True
                break
            found.append(self._window[inside])
        return found

    def _go_to(self, number: int) -> None:
        size = self._order.window
        while self._number < number:
            self._number += 1
            read = self._next_window(size)
            if size == 1:
                self._window = read
            else:
                order = self._order.in_window(self._lane, self._number, len(read), self._key)
                self._window = [read[place] for place in order]
            if not read:
                break

    def _next_window(self, size: int) -> list[Any]:
        if self._failed:
            message = (
                "a shard could not be read before, and what follows in its lane is not known; begin a new "
                "iteration, and let `iter_shard` pass over what it cannot read"
            )
            raise SamebitsError(message, slug="loader-iteration")
        self._failed = True
        read = list(itertools.islice(self._elements, size))
        self._failed = False
        return read

    @staticmethod
    def _read(
        shards: list[int], produce: Callable[[Any, int, int], Any], open_shard: Callable[[int], Any]
    ) -> Iterator[Any]:
        for shard in shards:
            iterator = open_shard(shard)
            for number in itertools.count():
                try:
                    element = produce(iterator, shard, number)
                except StopIteration:
                    break
                yield element


class Whole:
    """An iterable dataset without shards, as one with a single shard.

    Args:
        dataset: the user's.
    """

    num_shards = 1

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def iter_shard(self, number: int) -> Any:
        """All elements."""
        del number
        return iter(self.dataset)


def as_shards(dataset: Any, workers: int, world_size: int) -> Any:
    """The dataset as one with shards.

    Raises:
        SamebitsError: it has none, and would be read by several workers or ranks; `loader-option`.
    """
    if isinstance(dataset, Sharded):
        return dataset
    if workers > 1 or world_size > 1:
        message = (
            f"the dataset is iterable and has no shards, and is to be read by {max(workers, 1)} workers in "
            f"each of {world_size} ranks; what each of them gets would depend on their number: give it "
            "`num_shards` and `iter_shard(number)`, or read it with at most one worker in one process"
        )
        raise SamebitsError(message, slug="loader-option")
    return Whole(dataset)
