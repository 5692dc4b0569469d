"""Stands in for the modules that control is made of, as long as they are not there."""

from __future__ import annotations

import importlib.util
import random
import sys
import types
from typing import Any

HOME = "samebits.determinism"


class Source:
    """An RNG source that is seeded, and nothing else."""

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module

    def available(self) -> bool:
        return not self.module or self.module in sys.modules

    def seed(self, seed: int) -> None:
        if self.name == "python":
            random.seed(seed)
        elif self.name == "numpy":
            sys.modules["numpy.random"].seed(seed)
        else:
            sys.modules["torch"].manual_seed(seed)


SOURCES = (Source("python", ""), Source("numpy", "numpy.random"), Source("torch", "torch"))


def seed_all(seed: int, *, rank: int | None = None) -> int:
    for source in SOURCES:
        if source.available():
            source.seed(seed)
    return seed + (rank or 0)


class Part:
    """Controls nothing."""

    def __init__(self, active: Any) -> None:
        pass

    def install(self, *_: Any) -> None:
        pass

    def remove(self) -> None:
        pass


def install_missing() -> None:
    """Put stand-ins where a module is missing."""
    members = {
        "rng": {"sources": lambda: SOURCES, "seed_all": seed_all, "current_rank": lambda: 0},
        "generators": {"GeneratorControl": Part},
        "processes": {"ChildProcesses": Part},
        "loaders": {"LoaderControl": Part},
    }
    for name, contents in members.items():
        full = f"{HOME}.{name}"
        if full not in sys.modules and importlib.util.find_spec(full) is None:
            module = types.ModuleType(full)
            vars(module).update(contents)
            sys.modules[full] = module
