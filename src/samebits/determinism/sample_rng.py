"""Sets every generator that a sample may draw from to a key, some microseconds for each sample."""

from __future__ import annotations

import inspect
import random
import struct
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from samebits.determinism.held_generators import HeldGenerators
from samebits.determinism.process import PROCESS
from samebits.determinism.rng import seed_sources
from samebits.determinism.rng_sources import BUILT_IN
from samebits.determinism.rng_sources.numpy_global import KeptNumpy, NumpyGlobal
from samebits.determinism.rng_sources.plugins import plugins
from samebits.determinism.rng_sources.python_random import PythonRandom
from samebits.determinism.rng_sources.torch_devices import TorchCpu, unwrapped_method
from samebits.determinism.source_states import is_to_come
from samebits.errors import SamebitsError
from samebits.torch_private import default_generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.determinism.rng_sources import RngSource

_LOADING: ContextVar[bool] = ContextVar("samebits is loading samples", default=False)
_NUMPY_AND_TORCH = struct.Struct("<16xII")


class SampleRng:
    """The generators of this process, and those that a dataset and its transforms hold.

    Python's `random` gets 128 bits of the key, NumPy's and torch's global generators 32 bits each, as
    `numpy.random.seed` and `torch.manual_seed` take. Generators that are held get 128 bits that follow from
    the key and from where they are held. What is made without a seed while control is active follows from
    the sample as well.

    The generators are set through the objects behind the public functions: those may be wrapped by whoever
    watches what the user's code seeds.

    Args:
        roots: name -> object, such as the dataset, in which generators are looked for.
    """

    def __init__(self, roots: dict[str, Any]) -> None:
        self.held = HeldGenerators(roots)
        self._known = further_sources()
        self._further: tuple[RngSource, ...] = ()
        self._to_come: tuple[RngSource, ...] = ()
        self._numpy, self._torch = NumpyGlobal().seeder(), TorchCpu().seeder()
        self._python = PythonRandom().seeder()

    def begin_batch(self) -> None:
        """Look at what may have changed since the last batch."""
        self._further = tuple(source for source in self._known if source.available())
        self._to_come = tuple(source for source in self._known if is_to_come(source))
        self._numpy = NumpyGlobal().seeder()

    def key(self, key: bytes, *scope: int | str) -> None:
        """Set every generator.

        Args:
            key: of `EpochKeys`.
            scope: the sample's name, for generators that are made without a seed.
        """
        self._python(int.from_bytes(key[:16], "little"))
        numpy_seed, torch_seed = _NUMPY_AND_TORCH.unpack_from(key)
        self._numpy(numpy_seed)
        self._torch(torch_seed)
        if self.held.slots:
            self.held.key(key)
        for source in self._further:
            source.seed(int.from_bytes(key[24:32], "little"))
        if self._to_come:  # the library may be imported while the sample is loaded, or was by one before
            seed_sources(int.from_bytes(key[24:32], "little"), self._to_come)
        active = PROCESS.current
        if active is not None and active.seed is not None:
            active.enter_scope("sample", *scope)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, generators may be keyed; afterwards they are where they were.

        Raises:
            SamebitsError: one that was held could not be put back; `rng-state`.
        """
        with ExitStack() as stack:
            stack.enter_context(_scope_apart())
            stack.callback(inspect.unwrap(random.setstate), random.getstate())
            stack.callback(KeptNumpy().restore)
            stack.callback(unwrapped_method("set_state"), default_generator().get_state())
            stack.callback(self.held.restorer())
            for source in self._further:
                _keep_source(stack, source)
            stack.callback(PROCESS.waiting.end, PROCESS.waiting.begin(self._to_come))
            yield


@contextmanager
def surroundings(rng: SampleRng, threads: int) -> Iterator[None]:
    """In the main process: what a worker has, and afterwards everything as it was; in a worker nothing.

    A sample that loads samples of another loader goes on with its own numbers after that, in a worker too.

    Args:
        rng: puts the generators back.
        threads: how many torch has in a worker.
    """
    import torch

    nested = _LOADING.get()
    token = _LOADING.set(True)
    with ExitStack() as stack:
        stack.callback(_LOADING.reset, token)
        if torch.utils.data.get_worker_info() is not None and not nested:
            yield
            return
        stack.enter_context(rng.kept())
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


def _keep_source(stack: ExitStack, source: RngSource) -> None:
    with suppress(SamebitsError):  # it has no state that can be read (OpenCV); it is keyed all the same
        stack.callback(source.set_state, source.get_state())


def further_sources() -> tuple[RngSource, ...]:
    """The other sources that are seeded for each sample: OpenCV's, and those of other packages."""
    return tuple(source for source in BUILT_IN if source.per_sample) + plugins()
