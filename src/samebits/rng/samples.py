"""Keys of samples, and the generators that are set to them while a sample is loaded."""

from __future__ import annotations

import inspect
import random
import struct
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from samebits._torch.core import default_generator
from samebits.errors import SamebitsError
from samebits.rng._held_generators import HeldGenerators
from samebits.rng._source_states import is_to_come
from samebits.rng.active import PROCESS
from samebits.rng.seeds import derive
from samebits.rng.sources import BUILT_IN
from samebits.rng.sources.numpy_global import NumpyGlobal, NumpySnapshot
from samebits.rng.sources.plugins import plugins
from samebits.rng.sources.python_random import PythonRandom
from samebits.rng.sources.torch_devices import TorchCpu, unwrapped_method
from samebits.rng.states import seed_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.rng.sources import RngSource

_MASK = 2**64 - 1
_SAMPLE, _BATCH, _ELEMENT = b"s", b"b", b"e"


class EpochKeys:
    """The keys of the samples of one epoch: 48 bytes each, by BLAKE2b.

    Args:
        seed: from 0 to 2**64 - 1.
        epoch: from 0.
    """

    __slots__ = ("_batch", "_element", "_sample", "epoch", "seed")

    def __init__(self, seed: int, epoch: int) -> None:
        self.seed, self.epoch = seed, epoch
        secret = derive(seed, "samples", epoch).to_bytes(8, "little")
        # A copy of a state that has its key costs half as much as a new one.
        self._sample, self._batch, self._element = (
            blake2b(kind, key=secret, digest_size=48) for kind in (_SAMPLE, _BATCH, _ELEMENT)
        )

    def sample(self, index: int, position: int | None = None) -> bytes:
        """Return the key of a sample of a map-style dataset.

        Args:
            index: its index in the dataset.
            position: its position in the order of the epoch, where an index may occur twice; else None.
        """
        state = self._sample.copy()
        state.update((index & _MASK).to_bytes(8, "little"))
        if position is not None:
            state.update(position.to_bytes(8, "little"))
        return state.digest()

    def batch(self, position: int) -> bytes:
        """Return the key for work on a whole batch, by the position of its first sample."""
        state = self._batch.copy()
        state.update(position.to_bytes(8, "little"))
        return state.digest()

    def element(self, *numbers: int) -> bytes:
        """Return the key of an element of an iterable dataset, such as (shard, number in the shard)."""
        state = self._element.copy()
        for number in numbers:
            state.update(number.to_bytes(8, "little"))
        return state.digest()


_LOADING: ContextVar[bool] = ContextVar("samebits is loading samples", default=False)
_NUMPY_AND_TORCH = struct.Struct("<16xII")


class SampleRng:
    """The generators of this process, and those that a dataset and its transforms hold.

    Python's `random` gets 128 bits of the key, NumPy's and torch's global generators 32 bits each, as
    `numpy.random.seed` and `torch.manual_seed` take. Held generators get 128 bits that follow from the key
    and from the path to them. Generators made without a seed while control is active follow from the sample
    as well.

    The generators are set through the objects behind the public functions, because those functions may be
    wrapped to watch what the user's code seeds.

    Args:
        roots: name -> object, such as the dataset, in which generators are looked for.
    """

    def __init__(self, roots: dict[str, Any]) -> None:
        self.held = HeldGenerators(roots)
        # Also seeded for each sample: OpenCV's generator, and the sources of other packages.
        self._others = (*(source for source in BUILT_IN if source.per_sample), *plugins())
        self._available: tuple[RngSource, ...] = ()
        self._to_come: tuple[RngSource, ...] = ()
        self._numpy, self._torch = NumpyGlobal().seeder(), TorchCpu().seeder()
        self._python = PythonRandom().seeder()

    def begin_batch(self) -> None:
        """Find out which sources there are now, and which bit generator NumPy uses."""
        self._available = tuple(source for source in self._others if source.available())
        self._to_come = tuple(source for source in self._others if is_to_come(source))
        self._numpy = NumpyGlobal().seeder()

    def key(self, key: bytes, *scope: int | str) -> None:
        """Set every generator.

        Args:
            key: a key from `EpochKeys`.
            scope: the sample's name, for generators that are made without a seed.
        """
        self._python(int.from_bytes(key[:16], "little"))
        numpy_seed, torch_seed = _NUMPY_AND_TORCH.unpack_from(key)
        self._numpy(numpy_seed)
        self._torch(torch_seed)
        if self.held.slots:
            self.held.key(key)
        for source in self._available:
            source.seed(int.from_bytes(key[24:32], "little"))
        if self._to_come:  # the library may be imported while the sample is loaded, or was by one before
            seed_sources(int.from_bytes(key[24:32], "little"), self._to_come)
        active = PROCESS.current
        if active is not None and active.seed is not None:
            active.enter_scope("sample", *scope)

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Put the generators back to their present states at the end of the block.

        Raises:
            SamebitsError: a held one could not be put back; `rng-state`.
        """
        with ExitStack() as stack:
            stack.enter_context(_scope_apart())
            stack.callback(inspect.unwrap(random.setstate), random.getstate())
            stack.callback(NumpySnapshot().restore)
            stack.callback(unwrapped_method("set_state"), default_generator().get_state())
            stack.callback(self.held.restorer())
            for source in self._available:
                _restore_later(stack, source)
            stack.callback(PROCESS.waiting.end, PROCESS.waiting.begin(self._to_come))
            yield


@contextmanager
def as_in_worker(rng: SampleRng, threads: int) -> Iterator[None]:
    """Give the main process a worker's thread count, and undo all changes at the end; do nothing in a worker.

    A sample that loads samples of another loader then continues with its own numbers, in a worker too.

    Args:
        rng: puts the generators back.
        threads: the number of threads of torch in a worker.
    """
    import torch

    nested = _LOADING.get()
    token = _LOADING.set(True)
    with ExitStack() as stack:
        stack.callback(_LOADING.reset, token)
        if torch.utils.data.get_worker_info() is not None and not nested:
            yield
            return
        stack.enter_context(rng.preserved())
        before = torch.get_num_threads()
        if before != threads:
            torch.set_num_threads(threads)
            stack.callback(torch.set_num_threads, before)
        yield


@contextmanager
def _scope_apart() -> Iterator[None]:
    current = PROCESS.current
    if current is None:
        yield
        return
    forked = current.fork()
    PROCESS.push(forked)
    try:
        yield
    finally:
        PROCESS.drop(forked)


def _restore_later(stack: ExitStack, source: RngSource) -> None:
    with suppress(SamebitsError):  # it has no state that can be read (OpenCV); it is keyed all the same
        stack.callback(source.set_state, source.get_state())
