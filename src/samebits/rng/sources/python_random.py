"""The generator behind the functions of Python's `random`, and objects of `random.Random`."""

from __future__ import annotations

import ctypes
import platform
import random
import sys
from typing import TYPE_CHECKING, Any

from samebits.rng.seeds import fit
from samebits.rng.sources.source import (
    BuiltInSource,
    Library,
    StateFunction,
    from_json,
    memory_tensor,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from samebits.rng.sources.source import GeneratorObjects, Position

_WORDS = 625  # Mersenne Twister: 624 words of state and a position
PYTHON = Library(
    name="python",
    title="Python",
    intervention="seed-python",
    draws="random.",
    fresh=("random.Random", "random.seed"),
    own=("random.Random",),
    imported="random",
    seed_call="{}.seed({})",
    seeders=("random.seed",),
    generators=("random.Random",),
)


class PythonRandom(BuiltInSource):
    """Python's `random`: 624 words, a position, and the second value of the last `gauss`."""

    name = PYTHON.name
    module = ""
    library = PYTHON
    intervention = PYTHON.intervention
    functions = (StateFunction(("",), "seed", "random.seed"), StateFunction(("",), "setstate"))
    record_order = 2
    recorded_functions = functions[:1]
    seed_calls = ("random.",)

    def available(self) -> bool:
        """Return True: it always exists."""
        return True

    def seed(self, seed: int) -> None:
        """Do what `random.seed(seed)` does."""
        random.seed(fit(seed, self.name))

    def get_state(self) -> bytes:
        """Return JSON of `random.getstate()`."""
        return self.encode(random.getstate())

    def set_state(self, state: bytes) -> None:
        """Do what `random.setstate` does, which checks the words and the position."""
        random.setstate(self.decode(state))

    def version(self) -> str:
        """Return Python's version."""
        return f"Python {platform.python_version()}"

    def position_reader(self) -> Callable[[], Mapping[str, Position]]:
        """Return a function that reads the position of the global generator."""
        memory, name = python_state_address(), self.name
        if memory is None:
            return lambda: {name: _position()}
        words = (ctypes.c_uint32 * _WORDS).from_address(memory[0])
        return lambda: {name: (words[1] << 32 | words[2], words[0])}

    def state_reader(self) -> Callable[[], Sequence[tuple[str, Any]]]:
        """Read the words where CPython keeps them, else the text of `getstate`."""
        memory, name = python_state_address(), self.name
        if memory is None:
            return lambda: ((name, _text_tensor()),)
        states = ((name, memory_tensor(*memory)),)
        return lambda: states

    def earlier_seed(self) -> str:
        """Name the state; its seed is not known."""
        return "random.getstate()"

    def seeder(self) -> Callable[[int], None]:
        """Return a function that seeds as `random.seed` does with a whole number, past all its wrappers."""
        import _random

        instance, seed = getattr(random, "_inst", None), _random.Random.seed
        if not isinstance(instance, random.Random):
            return random.seed

        def seeded(value: int) -> None:
            seed(instance, value)
            instance.gauss_next = None  # type: ignore[attr-defined] # the second value of the last pair

        return seeded

    def kinds(self) -> tuple[type, ...]:
        """Return `random.Random`."""
        return (random.Random,)

    def owns(self, generator: Any) -> bool:
        """Tell whether it is a `random.Random`; `SystemRandom` has no state."""
        return isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom)

    def read(self, generator: Any) -> Any:
        """Return the result of its `getstate`."""
        return generator.getstate()

    def write(self, generator: Any, state: Any) -> None:
        """Call its `setstate`."""
        generator.setstate(state)

    def encode(self, state: Any) -> bytes:
        """Encode it as JSON."""
        return to_json(state)

    def decode(self, data: bytes) -> Any:
        """Decode a state for `random.setstate`."""
        version, words, gauss_next = from_json(data)
        return version, tuple(words), gauss_next


def python_state_address() -> tuple[int, int] | None:
    """Return the address of the global generator's state and its size in bytes; None if it is elsewhere.

    `random.getstate()` makes 625 Python integers, 9 microseconds each time. CPython keeps the same words as C
    integers in the object (Modules/_randommodule.c, `RandomObject`, 3.10 to 3.14). They are read there once a
    comparison with `getstate()` has shown that they are where they are expected.
    """
    instance = getattr(random, "_inst", None)
    if sys.implementation.name != "cpython" or not isinstance(instance, random.Random):
        return None
    address = id(instance) + object.__basicsize__
    words = list((ctypes.c_uint32 * _WORDS).from_address(address))
    if words[1:] + words[:1] != list(random.getstate()[1]):
        return None
    return address, 4 * _WORDS


def _text_tensor() -> Any:
    torch: Any = sys.modules["torch"]
    return torch.frombuffer(bytearray(repr(random.getstate()).encode()), dtype=torch.uint8)


def _position() -> Position:
    state = random.getstate()[1]
    return state[0] << 32 | state[1], state[-1]


if TYPE_CHECKING:
    _objects: GeneratorObjects = PythonRandom()
