"""Generators that a dataset and its transforms hold: found once, and set to a key for each sample."""

from __future__ import annotations

import functools
import random
import warnings
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import pass_on
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng._object_walk import GeneratorPath, Walk, walk
from samebits.rng.generator_objects import read, write
from samebits.rng.sources.numpy_global import global_bits

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute, element or variable that holds a generator.

    Args:
        held: the path to it.
        salt: tells its generator from others of the sample.
    """

    held: GeneratorPath
    salt: bytes


class HeldGenerators:
    """The generators in objects: attributes, elements, closures, globals of the user's functions.

    Paths are remembered, not generators, because a dataset may replace a generator. Small graphs of objects
    are examined after each batch, larger ones at the first batch of each process and epoch.

    Args:
        roots: name -> object.
    """

    def __init__(self, roots: dict[str, Any]) -> None:
        self._roots = roots
        self._walk: Walk | None = None
        self._told = False
        self.slots: tuple[Slot, ...] = ()
        self._globals = _global_generators()
        self.search()

    def search(self, *, again: bool = False) -> bool:
        """Search for generators.

        Args:
            again: search again even when the graph of objects is large.

        Returns:
            True when there is a generator that was not known.
        """
        last = self._walk
        if last is not None and not (again if last.large else last.is_stale()):
            return False
        self._walk = result = walk(self._roots)
        if not result.complete and not self._told:
            self._told = True
            warnings.warn(_too_much(result.visited), SamebitsWarning, stacklevel=2)
        known = {slot.held.path for slot in self.slots}
        self.slots = tuple(Slot(held, held.path.encode()) for held in result.generators)
        return any(slot.held.path not in known for slot in self.slots)

    def current(self) -> list[tuple[Any, bytes]]:
        """Return the generators that are held at this moment, each once."""
        seen, generators = set(self._globals), []
        for slot in self.slots:
            generator = slot.held.get()
            identity = id(getattr(generator, "bit_generator", generator))
            if generator is not None and identity not in seen:
                seen.add(identity)
                generators.append((generator, slot.salt))
        return generators

    def key(self, key: bytes) -> None:
        """Set each of them to 128 bits that follow from the sample's key and the path.

        Raises:
            SamebitsError: one cannot be set; `sample-generator`.
        """
        for generator, salt in self.current():
            digest = blake2b(salt, key=key, digest_size=32).digest()
            kind: Any = type(generator)
            try:
                _setter_for(kind)(generator, digest)
            except Exception as error:
                pass_on(error)
                raise _refused(generator, error) from error

    def restorer(self) -> Callable[[], None]:
        """Return a function that puts them back to their present states."""
        states = [(generator, read(generator)) for generator, _ in self.current()]

        def restore() -> None:
            for generator, state in states:
                write(generator, state)

        return restore


def _global_generators() -> frozenset[int]:
    """Return the identities of the global generators, which are keyed anyway."""
    import numpy as np
    import torch

    known = (getattr(random, "_inst", None), global_bits(), torch.default_generator)
    rand = getattr(getattr(np.random, "mtrand", None), "_rand", None)
    return frozenset(map(id, (*known, rand)))


def _too_much(visited: int) -> str:
    return (
        f"the dataset holds so many objects that only the first {visited} were searched for generators; "
        "generators in the others are not keyed, and their numbers may depend on the workers. Keep "
        "generators as attributes of the dataset or of its transforms"
    )


def _refused(generator: Any, error: Exception) -> SamebitsError:
    kind = f"{type(generator).__module__}.{type(generator).__qualname__}"
    message = (
        f"the dataset holds a generator of type {kind}, which cannot be set for a sample ({error!r}); hold a "
        "numpy.random.Generator, random.Random or torch.Generator instead"
    )
    return SamebitsError(message, slug="sample-generator")


def _set_numpy(generator: Any, digest: bytes) -> None:
    bits = generator.bit_generator
    number = int.from_bytes(digest[:16], "little")
    if type(bits).__name__ in {"PCG64", "PCG64DXSM"}:
        increment = int.from_bytes(digest[16:], "little") | 1
        inner = {"state": number, "inc": increment}
        state = {"bit_generator": type(bits).__name__, "state": inner, "has_uint32": 0, "uinteger": 0}
        bits.state = state
    else:
        _set_bits(bits, digest)


def _set_bits(bits: Any, digest: bytes) -> None:
    bits.state = type(bits)(int.from_bytes(digest[:16], "little")).state


def _set_legacy(generator: Any, digest: bytes) -> None:
    generator.seed(int.from_bytes(digest[:4], "little"))


def _set_python(generator: Any, digest: bytes) -> None:
    generator.seed(int.from_bytes(digest[:16], "little"))


def _set_torch(generator: Any, digest: bytes) -> None:
    generator.manual_seed(int.from_bytes(digest[:4], "little"))


@functools.lru_cache(maxsize=64)
def _setter_for(kind: Any) -> Callable[[Any, bytes], None]:
    import numpy as np
    import torch

    kinds: tuple[tuple[type[Any], Callable[[Any, bytes], None]], ...] = (
        (np.random.Generator, _set_numpy),
        (np.random.RandomState, _set_legacy),
        (np.random.BitGenerator, _set_bits),
        (torch.Generator, _set_torch),
        (random.Random, _set_python),
    )
    return next(setter for known, setter in kinds if issubclass(kind, known))
