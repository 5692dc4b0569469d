"""Iterable datasets in shards, which are dealt to streams and read in order."""

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
    """**Protocol:** an iterable dataset that several readers can share.

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
class ShardStreams:
    """The streams of shards that a global batch is put together from (option `lanes` of the loader).

    A stream is a list of shards that are read one after another. A batch has `parts` pieces, each from
    another stream, and `turns` sets of streams take turns.

    Batch `b` takes its piece `p` from stream `(b % turns) * parts + p`. So up to `parts` ranks and up to
    `turns` workers read no shard twice, and what a batch holds does not depend on how many there are.

    Args:
        parts: pieces of a global batch; divides it.
        turns: sets of streams that take turns.
    """

    parts: int
    turns: int

    @classmethod
    def of(cls, given: Any, shards: int, global_batch: int) -> ShardStreams:
        """Check the option; by default there are as many as the shards allow, up to 64 parts in 4 turns.

        Raises:
            SamebitsError: it is not (parts, turns), or does not fit the batch; `loader-option`.
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
        """The number of streams."""
        return self.parts * self.turns

    def pieces(self, start: int, stop: int, global_batch: int) -> Iterator[tuple[int, int, int]]:
        """Yield the streams that positions of one global batch read from.

        Returns:
            The stream, the first index in it and the one after the last.
        """
        batch, size = start // global_batch, global_batch // self.parts
        first, last = start % global_batch, (stop - 1) % global_batch + 1
        for part in range(first // size, -(-last // size)):
            base = batch // self.turns * size
            low, high = max(first - part * size, 0), min(last - part * size, size)
            yield batch % self.turns * self.parts + part, base + low, base + high


@dataclass(frozen=True, slots=True)
class Endless(Partition):
    """The partition of an order whose length is not known; `size` counts shards."""

    @property
    def positions(self) -> int:
        """An upper bound on the number of elements that will be read."""
        return _ENDLESS // self.global_batch * self.global_batch

    @property
    def rest(self) -> int:
        """Return 0: the number is not known."""
        return 0

    def streams_of_rank(self, streams: ShardStreams) -> frozenset[int]:
        """Return the streams that this rank reads from."""
        parts = [self.part(batch) for batch in range(streams.turns)]
        pieces = [streams.pieces(start, stop, self.global_batch) for start, stop in parts if start < stop]
        return frozenset(stream for of_batch in pieces for stream, _, _ in of_batch)


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """The order of the elements of shards.

    Args:
        shards: how many there are.
        streams: the streams that a batch reads.
        shuffle: shards are dealt to streams in another order in every epoch.
        window: how many elements of a stream are shuffled together, from 1.
    """

    shards: int
    streams: ShardStreams
    shuffle: bool
    window: int
    repeats = False

    def __len__(self) -> int:
        return self.shards

    def shards_of_stream(self, stream: int, seed: int, epoch: int) -> list[int]:
        """Return the shards of a stream, in the order in which they are read."""
        positions = range(stream, self.shards, self.streams.count)
        if not self.shuffle:
            return list(positions)
        order = permutation(self.shards, order_key(seed, epoch))
        return [order.at(position) for position in positions]

    def in_window(self, stream: int, number: int, size: int, key: int) -> Any:
        """Return the order of the elements of a window."""
        return permutation(size, derive(key, "window", stream, number)).block(0, size)

    def identity(self) -> int:
        """Return 63 bits that follow from all fields."""
        numbers = (self.streams.parts, self.streams.turns, int(self.shuffle), self.window)
        return identity_of("shards", self.shards, *numbers)


class StreamReader:
    """Reads one stream of one epoch, forwards.

    Each window of elements is read whole and shuffled by a permutation of its own. So the order is a function
    of (seed, epoch, stream, window): a reader that begins later gives what one that began earlier would.

    Args:
        order: of the elements.
        stream: its number.
        seed: of the loader.
        epoch: from 0.
        produce: gives the next element of an iterator, under the key of (shard, number).
        open_shard: begins a shard.
    """

    def __init__(
        self,
        order: ShardOrder,
        stream: int,
        seed: int,
        epoch: int,
        produce: Callable[[Any, int, int], Any],
        open_shard: Callable[[int], Any],
    ) -> None:
        self._order, self._stream = order, stream
        self._key = order_key(seed, epoch)
        self._elements = self._read(order.shards_of_stream(stream, seed, epoch), produce, open_shard)
        self._window: list[Any] = []
        self._number = -1
        self._failed = False  # whether reading ended with an exception: the generator gives nothing more then
        self.ended = False

    def take(self, first: int, last: int) -> list[Any]:
        """Return the elements of the stream from `first` to `last - 1`; fewer where it ends.

        Args:
            first: an index not before the window of the elements that were taken last.
            last: the index after the last.
        """
        elements = []
        for index in range(first, last):
            self._go_to(index // self._order.window)
            inside = index % self._order.window
            if inside >= len(self._window):
                self.ended = True
                break
            elements.append(self._window[inside])
        return elements

    def _go_to(self, number: int) -> None:
        size = self._order.window
        while self._number < number:
            self._number += 1
            read = self._next_window(size)
            if size == 1:
                self._window = read
            else:
                order = self._order.in_window(self._stream, self._number, len(read), self._key)
                self._window = [read[index] for index in order]
            if not read:
                break

    def _next_window(self, size: int) -> list[Any]:
        if self._failed:
            message = (
                "reading a shard failed before, so what follows in its stream is not known; begin a new "
                "iteration, and let `iter_shard` skip what it cannot read"
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


class SingleShard:
    """An iterable dataset without shards, presented as one with a single shard.

    Args:
        dataset: the user's.
    """

    num_shards = 1

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def iter_shard(self, number: int) -> Any:
        """Return all elements."""
        del number
        return iter(self.dataset)


def as_shards(dataset: Any, workers: int, world_size: int) -> Any:
    """Return the dataset as one with shards.

    Raises:
        SamebitsError: it has none, and several workers or ranks would read it; `loader-option`.
    """
    if isinstance(dataset, Sharded):
        return dataset
    if workers > 1 or world_size > 1:
        message = (
            f"the dataset is iterable and has no shards, but {max(workers, 1)} workers in each of "
            f"{world_size} ranks are to read it; what each of them gets would depend on their number: give "
            "it `num_shards` and `iter_shard(number)`, or read it with at most one worker in one process"
        )
        raise SamebitsError(message, slug="loader-option")
    return SingleShard(dataset)
