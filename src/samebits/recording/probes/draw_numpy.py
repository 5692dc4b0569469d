"""Generators of NumPy that are made without a seed."""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import calling_frame
from samebits.recording.events import UNUSED

if TYPE_CHECKING:
    from samebits.hooks.patching import Patches
    from samebits.hooks.static_types import StaticTypePatches
    from samebits.recording.probes.draw_log import DrawLog

_OP = "numpy.random.SeedSequence"


def watch_numpy_entropy(patches: Patches, static: StaticTypePatches, log: DrawLog) -> None:
    """Record what seeds `default_rng()`, `RandomState()`, `PCG64()` and `numpy.random.seed()`.

    All take it in one function. `RandomState(3)` does too, before it puts the seed that it was given in
    place (numpy/random/mtrand.pyx): then a second event says that the first was not used.
    """
    bit_generator: Any = sys.modules["numpy.random.bit_generator"]
    original = bit_generator.randbits
    last: dict[int, tuple[object, int]] = {}  # by thread: the instruction that took entropy

    @functools.wraps(original)
    def randbits(count: int) -> int:
        value = int(original(count))
        frame = calling_frame()
        log.taken(_OP, frame, value, through=True)
        last[threading.get_ident()] = (id(frame), frame.f_lasti)
        return value

    patches.set(bit_generator, "randbits", randbits)
    twister: Any = getattr(sys.modules.get("numpy.random._mt19937"), "MT19937", None)
    seed_legacy = None if twister is None else vars(twister).get("_legacy_seeding")
    if seed_legacy is None:
        return

    def _legacy_seeding(self: Any, seed: Any) -> Any:
        result = seed_legacy(self, seed)
        frame = calling_frame()
        if last.pop(threading.get_ident(), None) == (id(frame), frame.f_lasti) and seed is not None:
            log.taken(_OP, frame, UNUSED, through=True)
        return result

    static.set(twister, "_legacy_seeding", _legacy_seeding)
