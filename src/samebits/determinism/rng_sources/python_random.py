"""The generator behind the functions of Python's `random`."""

from __future__ import annotations

import platform
import random
from typing import TYPE_CHECKING

from samebits.determinism.rng_sources.encoding import from_json, to_json
from samebits.determinism.seeds import fit

if TYPE_CHECKING:
    from samebits.determinism.rng_sources.source import RngSource


class PythonRandom:
    """Python's `random`: 624 words, a position, and the second value of the last `gauss`."""

    name = "python"
    module = ""

    def available(self) -> bool:
        """Always."""
        return True

    def seed(self, seed: int) -> None:
        """As `random.seed(seed)`."""
        random.seed(fit(seed, self.name))

    def get_state(self) -> bytes:
        """JSON of `random.getstate()`."""
        return to_json(random.getstate())

    def set_state(self, state: bytes) -> None:
        """As `random.setstate`, which checks the words and the position."""
        version, words, gauss_next = from_json(state)
        random.setstate((version, tuple(words), gauss_next))

    def version(self) -> str:
        """Python's version."""
        return f"Python {platform.python_version()}"


if TYPE_CHECKING:
    _: RngSource = PythonRandom()
