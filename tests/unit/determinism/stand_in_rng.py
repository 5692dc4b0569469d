"""Stands in for `samebits.determinism.rng` where that is not there: three sources, the same contract."""

from __future__ import annotations

import ast
import random
import sys

from samebits.determinism.seeds import fit


class PythonRandom:
    """Python's global generator."""

    name = "python"

    def available(self):
        """Always."""
        return True

    def seed(self, seed):
        """As `random.seed`."""
        random.seed(fit(seed, "python"))

    def get_state(self):
        """Its state."""
        return repr(random.getstate()).encode()

    def set_state(self, state):
        """Put it back."""
        random.setstate(ast.literal_eval(state.decode()))


class NumpyGlobal:
    """NumPy's global generator."""

    name = "numpy"

    def available(self):
        """When it is imported."""
        return "numpy" in sys.modules

    def seed(self, seed):
        """As `numpy.random.seed`."""
        sys.modules["numpy"].random.seed(fit(seed, "numpy"))

    def get_state(self):
        """Its state."""
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        return repr((kind, keys.tolist(), *rest)).encode()


class TorchCpu:
    """Torch's generator on the CPU."""

    name = "torch"

    def available(self):
        """When it is imported."""
        return "torch" in sys.modules

    def seed(self, seed):
        """As `torch.manual_seed`."""
        sys.modules["torch"].manual_seed(fit(seed, "torch"))

    def get_state(self):
        """Its state."""
        return bytes(sys.modules["torch"].get_rng_state().numpy())


def sources():
    """All of them."""
    return (PythonRandom(), NumpyGlobal(), TorchCpu())


def seed_sources(seed, among=None):
    """Seed those that are available."""
    for source in sources() if among is None else among:
        if source.available():
            source.seed(seed)
