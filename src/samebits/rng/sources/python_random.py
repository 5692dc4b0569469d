"""The generator behind the functions of Python's `random`, and objects of `random.Random`."""

from __future__ import annotations

import ctypes
import platform
import random
import sys
from typing import TYPE_CHECKING, Any

from samebits.rng.seeds import fit
from samebits.rng.sources.source import BuiltIn, Library, StateFunction, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits.rng.sources.source import GeneratorObjects, Position, RngSource

PYTHON = Library(
    name="python",
    words="Python",
    intervention="seed-python",
    draws="random.",
    fresh=("random.Random", "random.seed"),
    own=("random.Random",),
    imported="random",
    seed_call="{}.seed({})",
    seeders=("random.seed",),
    generators=("random.Random",),
)


class PythonRandom(BuiltIn):
    """Python's `random`: 624 words, a position, and the second value of the last `gauss`."""

    name = PYTHON.name
    module = ""
    library = PYTHON
    intervention = PYTHON.intervention
    functions = (StateFunction(("",), "seed", "random.seed"), StateFunction(("",), "setstate"))
    seed_calls = ("random.",)

    def available(self) -> bool:
        """Always."""
        return True

    def seed(self, seed: int) -> None:
        """As `random.seed(seed)`."""
        random.seed(fit(seed, self.name))

    def get_state(self) -> bytes:
        """JSON of `random.getstate()`."""
        return self.encode(random.getstate())

    def set_state(self, state: bytes) -> None:
        """As `random.setstate`, which checks the words and the position."""
        random.setstate(self.decode(state))

    def version(self) -> str:
        """Python's version."""
        return f"Python {platform.python_version()}"

    def position_reader(self) -> Callable[[], Mapping[str, Position]]:
        """Of the global generator.

        CPython keeps its words in the object (Modules/_randommodule.c, `RandomObject`, 3.10 to 3.14); they
        are read there when they are where they are expected, else through `getstate`, 9 microseconds each
        time.
        """
        instance, name = getattr(random, "_inst", None), self.name
        if sys.implementation.name == "cpython" and isinstance(instance, random.Random):
            words = (ctypes.c_uint32 * 625).from_address(id(instance) + object.__basicsize__)
            if [*words[1:], words[0]] == list(random.getstate()[1]):
                return lambda: {name: (words[1] << 32 | words[2], words[0])}
        return lambda: {name: _position()}

    def seeder(self) -> Callable[[int], None]:
        """Does what `random.seed` does with a whole number, past whatever is put around that function."""
        import _random

        instance, seed = getattr(random, "_inst", None), _random.Random.seed
        if not isinstance(instance, random.Random):
            return random.seed

        def seeded(value: int) -> None:
            seed(instance, value)
            instance.gauss_next = None  # type: ignore[attr-defined] # the second value of the last pair

        return seeded

    def kinds(self) -> tuple[type, ...]:
        """`random.Random`."""
        return (random.Random,)

    def owns(self, generator: Any) -> bool:
        """Whether it is a `random.Random`; `SystemRandom` has no state."""
        return isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom)

    def read(self, generator: Any) -> Any:
        """As its `getstate`."""
        return generator.getstate()

    def write(self, generator: Any, state: Any) -> None:
        """As its `setstate`."""
        generator.setstate(state)

    def encode(self, state: Any) -> bytes:
        """JSON."""
        return to_json(state)

    def decode(self, data: bytes) -> Any:
        """What `random.setstate` takes."""
        version, words, gauss_next = from_json(data)
        return version, tuple(words), gauss_next


def _position() -> Position:
    state = random.getstate()[1]
    return state[0] << 32 | state[1], state[-1]


if TYPE_CHECKING:
    _source: RngSource = PythonRandom()
    _objects: GeneratorObjects = PythonRandom()
