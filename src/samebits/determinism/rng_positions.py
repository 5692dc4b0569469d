"""Where the global generators stand, read without copying their states, and whether one went back.

A Mersenne Twister makes 624 numbers at a time. Which 624 it is in, and how many it has given out, says where
it stands: two states that agree in that are the same point of the same stream, up to a chance of 2**-64.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.torch_private import default_generator, numpy_state_address, twister_head

if TYPE_CHECKING:
    from collections.abc import Callable

Position = tuple[int, int]
"""Which block of numbers, and how many of them were drawn."""

_REMEMBERED = 100_000
_HEAD = 40


def torch_position() -> Position | None:
    """Of torch's CPU generator."""
    generator = default_generator()
    if generator is None:
        return None
    state = generator.get_state()
    return twister_head(ctypes.string_at(state.data_ptr(), _HEAD)) if state.numel() >= _HEAD else None


def numpy_position() -> Position | None:
    """Of NumPy's global generator; None when it is not a Mersenne Twister."""
    found = numpy_state_address()
    if found is None:
        return None
    words = (ctypes.c_uint32 * 625).from_address(found[0])
    return words[0] << 32 | words[1], words[624]


def python_reader() -> Callable[[], Position | None]:
    """A function that gives the position of Python's global generator.

    CPython keeps its words in the object (Modules/_randommodule.c, `RandomObject`, 3.10 to 3.14); they are
    read there when they are where they are expected, else through `getstate`, 9 microseconds each time.
    """
    instance = getattr(random, "_inst", None)
    if sys.implementation.name == "cpython" and isinstance(instance, random.Random):
        words = (ctypes.c_uint32 * 625).from_address(id(instance) + object.__basicsize__)
        if [*words[1:], words[0]] == list(random.getstate()[1]):
            return lambda: (words[1] << 32 | words[2], words[0])
    return _python_position


def _python_position() -> Position:
    state = random.getstate()[1]
    return state[0] << 32 | state[1], state[-1]


def cuda_positions() -> dict[str, Position]:
    """Of the generators of all CUDA devices; empty before CUDA is used. They count in Philox offsets."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return {}
    found = {}
    for index, generator in enumerate(cuda.default_generators):
        try:
            state = generator.get_state()
        except RuntimeError:  # while a CUDA graph is being captured
            continue
        found[f"cuda:{index}"] = struct.unpack("<QQ", ctypes.string_at(state.data_ptr(), 16))
    return found


class Rewind(NamedTuple):
    """A generator that stands where it stood before.

    Args:
        source: `torch`, `numpy`, `python`, `cuda:0`.
        earlier: when it stood there: `step 3`, `the seeding`.
    """

    source: str
    earlier: str


class Path:
    """Where one generator has been."""

    def __init__(self) -> None:
        self.at: Position | None = None
        self._seen: OrderedDict[int, tuple[int, str]] = OrderedDict()

    def earlier(self, position: Position) -> str:
        """When the generator was there, or farther in the same numbers; empty when it never was."""
        farthest, when = self._seen.get(position[0], (-1, ""))
        return when if position[1] <= farthest else ""

    def go(self, position: Position, when: str) -> None:
        """It is there now, and goes on from there; when it went back, what lay ahead is forgotten."""
        self.at = position
        if self.earlier(position):
            self._seen.clear()
        if position[1] > self._seen.get(position[0], (-1, ""))[0]:
            self._seen[position[0]] = (position[1], when)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)


class RngWatch:
    """Notices that a global generator went back to where it has been."""

    def __init__(self) -> None:
        self._python = python_reader()
        self.paths: dict[str, Path] = {}

    def positions(self) -> dict[str, Position]:
        """Where every generator stands that can be read."""
        found = cuda_positions()
        for source, position in (
            ("torch", torch_position()),
            ("numpy", numpy_position()),
            ("python", self._python()),
        ):
            if position is not None:
                found[source] = position
        return found

    def begin(self) -> None:
        """What is known of the past is forgotten; the generators start from where they stand."""
        self.paths.clear()
        self.note("the start of control")

    def note(self, when: str) -> list[Rewind]:
        """Remember where every generator stands, and tell which of them went back."""
        rewinds = []
        for source, position in self.positions().items():
            path = self.paths.get(source)
            if path is None:
                path = self.paths[source] = Path()
            if position == path.at:
                continue
            earlier = path.earlier(position)
            if earlier:
                rewinds.append(Rewind(source, earlier))
            path.go(position, when)
        return rewinds
