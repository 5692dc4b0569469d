"""The generator behind the functions of `numpy.random`, and NumPy's generator objects."""

from __future__ import annotations

import ctypes
import inspect
import sys
from typing import TYPE_CHECKING, Any

from samebits._torch.core import numpy_state_address
from samebits.rng.seeds import fit
from samebits.rng.sources.source import (
    BuiltInSource,
    Library,
    StateFunction,
    expect,
    from_json,
    loaded,
    memory_tensor,
    to_json,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from samebits.rng.sources.source import GeneratorObjects, Position

_TWISTER = "MT19937"
BIT_GENERATORS = (_TWISTER, "PCG64", "PCG64DXSM", "Philox", "SFC64")
MAKERS = ("default_rng", "RandomState", "SeedSequence", *BIT_GENERATORS)
"""The names in `numpy.random` that make a generator, or a seed of one."""
NUMPY = Library(
    name="numpy",
    title="NumPy",
    intervention="seed-numpy",
    draws="numpy.random.",
    fresh=("numpy.random.SeedSequence",),
    own=("numpy.random.SeedSequence",),
    imported="numpy",
    seed_call="{}.random.seed({})",
    seeders=("numpy.random.seed",),
    generators=tuple(f"numpy.random.{name}" for name in MAKERS),
)


class NumpyGlobal(BuiltInSource):
    """NumPy's global generator, whichever bit generator `numpy.random.set_bit_generator` gave it.

    NumPy imports `numpy.random` when it is first used, which is when the generator begins to exist.
    """

    name = NUMPY.name
    module = "numpy.random"
    library = NUMPY
    intervention = NUMPY.intervention
    functions = (StateFunction(("",), "seed", "numpy.random.seed"), StateFunction(("",), "set_state"))
    record_order = 3
    recorded_functions = functions[:1]
    seed_calls = ("numpy.", "np.")

    def available(self) -> bool:
        """Tell whether `numpy.random` is imported."""
        return loaded(self.module, "get_bit_generator", "get_state", "seed") is not None

    def seed(self, seed: int) -> None:
        """Do what `numpy.random.seed(seed)` does; a bit generator other than MT19937 is made again."""
        numpy_random: Any = sys.modules[self.module]
        seed = fit(seed, self.name)
        bits = numpy_random.get_bit_generator()
        if type(bits).__name__ == _TWISTER:
            numpy_random.seed(seed)
        else:
            numpy_random.set_state(type(bits)(seed).state)

    def get_state(self) -> bytes:
        """Return JSON of `numpy.random.get_state(legacy=False)`, which has the last `gauss` too."""
        return to_json(sys.modules[self.module].get_state(legacy=False))

    def set_state(self, state: bytes) -> None:
        """Do what `numpy.random.set_state` does, with the bit generator that was in use."""
        numpy_random: Any = sys.modules[self.module]
        fields = self.decode(state)
        _use_kind(numpy_random, fields["bit_generator"])
        numpy_random.set_state(fields)
        # NumPy accepts values that are too long or too large, and holds something else.
        expect(self.get_state() == to_json(fields), "NumPy accepted it but holds a different one")

    def version(self) -> str:
        """Return NumPy's version."""
        return version_of("numpy")

    def position_reader(self) -> Callable[[], Mapping[str, Position]]:
        """Return a function that reads the global generator's position, if it is a Mersenne Twister."""

        def read() -> Mapping[str, Position]:
            memory = numpy_state_address()
            if memory is None:
                return {}
            words = (ctypes.c_uint32 * 625).from_address(memory[0])
            return {self.name: (words[0] << 32 | words[1], words[624])}

        return read

    def state_reader(self) -> Callable[[], Sequence[tuple[str, Any]]]:
        """Read the global generator, when it is a Mersenne Twister."""
        tensors: dict[tuple[int, int], Any] = {}

        def read() -> Sequence[tuple[str, Any]]:
            memory = numpy_state_address()
            if memory is None:
                return ()
            tensor = tensors.get(memory)
            if tensor is None:
                tensor = tensors[memory] = memory_tensor(*memory)
            return ((self.name, tensor),)

        return read

    def earlier_seed(self) -> str:
        """Name the generator if NumPy is imported; its seed is not known."""
        return self.module if "numpy" in sys.modules else ""

    def seeder(self) -> Callable[[int], None]:
        """Return a function that seeds as `numpy.random.seed` does with 32 bits, for any bit generator."""
        import numpy as np

        generator = getattr(getattr(np.random, "mtrand", None), "_rand", None)
        if isinstance(global_bits(), np.random.MT19937) and generator is not None:
            seed: Callable[[int], None] = generator.seed
            return seed
        return self.seed

    def kinds(self) -> tuple[type, ...]:
        """Return the types that hold a state; a `Generator` has that of its bit generator."""
        numpy_random: Any = loaded(self.module, "RandomState", "BitGenerator", "Generator")
        return () if numpy_random is None else (numpy_random.RandomState, numpy_random.BitGenerator)

    def owns(self, generator: Any) -> bool:
        """Tell whether it is a `Generator`, `RandomState` or bit generator."""
        kinds = self.kinds()
        return bool(kinds) and isinstance(generator, (*kinds, sys.modules[self.module].Generator))

    def read(self, generator: Any) -> Any:
        """Return a dict, as NumPy gives it."""
        holder = getattr(generator, "bit_generator", generator)
        return holder.get_state(legacy=False) if hasattr(holder, "get_state") else holder.state

    def write(self, generator: Any, state: Any) -> None:
        """Set its state, or its bit generator's."""
        holder = getattr(generator, "bit_generator", generator)
        if hasattr(holder, "set_state"):
            holder.set_state(state)
        else:
            holder.state = state

    def encode(self, state: Any) -> bytes:
        """Encode it as JSON."""
        return to_json(state)

    def decode(self, data: bytes) -> Any:
        """Decode a dict, and check its position and lengths."""
        fields = from_json(data)
        expect(isinstance(fields, dict) and isinstance(fields.get("state"), dict), "it is no state of NumPy")
        _check_bits(fields)
        return fields


class NumpySnapshot:
    """The state of NumPy's global generator at the moment this is made.

    NumPy builds a dict and an array word by word. A Mersenne Twister's 624 words and position lie at a
    documented address (`BitGenerator.ctypes.state_address`) and are copied. They do not show whether the
    second value of a pair of normal numbers waits. If it does, the next `standard_normal` takes it without
    moving the words. NumPy will not change that (NEP 19: `RandomState` is frozen). When a value waits, and
    with other bit generators, NumPy's own functions are used.
    """

    def __init__(self) -> None:
        import numpy as np

        self._random: Any = np.random
        self._memory = numpy_state_address()
        self._words = b""
        self._state: dict[str, Any] | None = None
        if self._memory is None:
            self._state = self._random.get_state(legacy=False)
            return
        self._words = ctypes.string_at(*self._memory)
        self._legacy: Any = np.random.mtrand._rand  # as scikit-learn does
        value = self._legacy.standard_normal()
        if ctypes.string_at(*self._memory) == self._words:  # it waited
            self._state = {**self._random.get_state(legacy=False), "has_gauss": 1, "gauss": value}
        self.restore()

    def restore(self) -> None:
        """Put it back."""
        if self._state is not None:
            # Without control's wrappers, because other generators have still to be put back.
            inspect.unwrap(self._random.set_state)(self._state)
        elif self._memory is not None:
            self._legacy.seed(0)  # drops a value that waits
            ctypes.memmove(self._memory[0], self._words, len(self._words))


def global_bits() -> Any:
    """Return the bit generator of NumPy's global generator."""
    import numpy as np

    return getattr(np.random, "get_bit_generator")()  # noqa: B009 - NumPy's annotations lack it


def _check_bits(fields: dict[str, Any]) -> None:
    """Check what NumPy does not: with a wrong position it reads outside of its memory.

    Raises:
        ValueError: a position or a length is not possible.
    """
    inner = fields["state"]
    if fields["bit_generator"] == _TWISTER:
        expect(len(inner["key"]) == 624, f"{len(inner['key'])} words; MT19937 has 624")
        expect(0 <= inner["pos"] <= 624, f"position {inner['pos']}; MT19937 has 0 to 624")
    for position in ("buffer_pos", "pos"):
        expect(fields.get(position, 0) >= 0, f"{position} is {fields.get(position)}")


def _use_kind(numpy_random: Any, name: str) -> None:
    """Make the global generator draw from a bit generator of that kind."""
    if type(numpy_random.get_bit_generator()).__name__ == name:
        return
    kind = getattr(numpy_random, name, None) if isinstance(name, str) else None
    is_bits = isinstance(kind, type) and issubclass(kind, numpy_random.BitGenerator)
    expect(is_bits, f"NumPy has no bit generator {name!r}")
    numpy_random.set_bit_generator(kind(0))  # type: ignore[misc] # `expect` did not return


if TYPE_CHECKING:
    _objects: GeneratorObjects = NumpyGlobal()
