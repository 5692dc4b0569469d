"""The generator behind the functions of `numpy.random`."""

from __future__ import annotations

import sys
from typing import Any

from samebits.determinism.rng_sources.encoding import from_json, to_json
from samebits.determinism.rng_sources.source import expect, loaded, version_of
from samebits.determinism.seeds import fit

_TWISTER = "MT19937"


class NumpyGlobal:
    """NumPy's global generator, whichever bit generator `numpy.random.set_bit_generator` gave it.

    NumPy imports `numpy.random` when it is first used, which is when the generator begins to exist.
    """

    name = "numpy"
    module = "numpy.random"

    def available(self) -> bool:
        """Whether `numpy.random` is imported."""
        return loaded(self.module, "get_bit_generator", "get_state", "seed") is not None

    def seed(self, seed: int) -> None:
        """As `numpy.random.seed(seed)`, which takes no bit generator but MT19937; others are seeded anew."""
        numpy_random: Any = sys.modules[self.module]
        seed = fit(seed, self.name)
        bits = numpy_random.get_bit_generator()
        if type(bits).__name__ == _TWISTER:
            numpy_random.seed(seed)
        else:
            numpy_random.set_state(type(bits)(seed).state)

    def get_state(self) -> bytes:
        """JSON of `numpy.random.get_state(legacy=False)`: the bit generator's state and the last `gauss`."""
        return to_json(sys.modules[self.module].get_state(legacy=False))

    def set_state(self, state: bytes) -> None:
        """As `numpy.random.set_state`, with the bit generator that was in use."""
        numpy_random: Any = sys.modules[self.module]
        fields = from_json(state)
        expect(isinstance(fields, dict) and isinstance(fields.get("state"), dict), "it is no state of NumPy")
        check_bits(fields)
        _use_kind(numpy_random, fields["bit_generator"])
        numpy_random.set_state(fields)
        # NumPy takes what is too long or too large, and holds something else.
        expect(self.get_state() == to_json(fields), "NumPy took it and holds another one")

    def version(self) -> str:
        """NumPy's version."""
        return version_of("numpy")


def check_bits(fields: dict[str, Any]) -> None:
    """Check what NumPy takes without a look: it reads outside of its memory with a wrong position.

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
    """Have the global generator draw from a bit generator of that kind."""
    if type(numpy_random.get_bit_generator()).__name__ == name:
        return
    kind = getattr(numpy_random, name, None) if isinstance(name, str) else None
    is_bits = isinstance(kind, type) and issubclass(kind, numpy_random.BitGenerator)
    expect(is_bits, f"NumPy has no bit generator {name!r}")
    numpy_random.set_bit_generator(kind(0))  # type: ignore[misc] # `expect` did not return
