"""Named streams: generators that depend on the run seed and a name, and on nothing else."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from samebits.rng.active import PROCESS, required
from samebits.rng.seeds import check_keys, check_seed, derive


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of random numbers, separate from all others.

    Each method makes a new generator at the stream's beginning.

    Args:
        seed: 64 bits, of which the low 32 suffice: torch's CPU generator uses no others.
        keys: the stream's name.
    """

    seed: int
    keys: tuple[int | str, ...]

    def python(self) -> random.Random:
        """Return a generator of Python."""
        return random.Random(self.seed)

    def numpy(self) -> Any:
        """Return a `numpy.random.Generator` over PCG64, whatever NumPy's default becomes."""
        import numpy as np

        return np.random.Generator(np.random.PCG64(self.seed))

    def torch(self, device: Any = "cpu") -> Any:
        """Return a `torch.Generator`.

        Args:
            device: the device on which it draws.
        """
        import torch

        return torch.Generator(device=device).manual_seed(self.seed)

    def jax(self) -> Any:
        """Return a key of JAX from the low 32 bits; JAX takes more only if it was told to use 64 bits.

        Written against JAX's documentation, tried with a stand-in.
        """
        from importlib import import_module

        return import_module("jax.random").key(self.seed & (2**32 - 1))

    def child(self, *keys: int | str) -> Stream:
        """Return a separate stream below this one: `stream("a").child(1)` is not `stream("a", 1)`."""
        return Stream(derive(self.seed, "child", *check_keys(keys)), (*self.keys, *keys))


def stream(*keys: int | str, seed: int | None = None) -> Stream:
    """Return the stream of that name, such as `stream("augment", epoch, index)`.

    Args:
        keys: whole numbers and texts; every name is a stream unrelated to all others.
        seed: from 0 to 2**64 - 1; by default the run seed.

    Raises:
        SamebitsError: no seed is given or in force, `no-seed`; the seed is invalid, `seed`; a key is neither
            a whole number nor text, `stream-key`.
    """
    base = required(PROCESS.run_seed) if seed is None else check_seed(seed)
    keys = check_keys(keys)
    return Stream(derive(base, "stream", *keys), keys)
