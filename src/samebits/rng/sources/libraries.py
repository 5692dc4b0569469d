"""Generators of libraries that can be seeded but have no state that can be read."""

from __future__ import annotations

import sys
from typing import Any

from samebits.rng.seeds import fit
from samebits.rng.sources.source import BuiltInSource, loaded, unsaved, version_of


class _SeedOnly(BuiltInSource):
    """A generator that can be seeded but not saved or restored."""

    reason: str
    needed: str

    def available(self) -> bool:
        """Tell whether the library is imported."""
        return loaded(self.module, self.needed) is not None

    def get_state(self) -> bytes:
        """Refuse.

        Raises:
            SamebitsError: always; `rng-not-saved`.
        """
        raise unsaved(self.title, self.reason)

    def set_state(self, state: bytes) -> None:  # noqa: ARG002 - of the protocol
        """Refuse.

        Raises:
            SamebitsError: always; `rng-not-saved`.
        """
        raise unsaved(self.title, self.reason)

    def version(self) -> str:
        """Return the library's version."""
        return version_of(self.module)


class OpenCV(_SeedOnly):
    """The generator of `cv2.randu`, `randn`, `randShuffle`, `kmeans` and others, of the thread that seeds."""

    name = "opencv"
    module = "cv2"
    title = "OpenCV"
    reason = "its Python module has no `theRNG`"
    needed = "setRNGSeed"
    per_sample = True  # each thread has one; the devices' take milliseconds

    def seed(self, seed: int) -> None:
        """Do what `cv2.setRNGSeed(seed)` does, with the seed as 32 bits with a sign."""
        seed = fit(seed, self.name)
        sys.modules[self.module].setRNGSeed(seed - 2**32 if seed >= 2**31 else seed)


class CuPy(_SeedOnly):
    """CuPy's global generators, one per device. Written against its documentation, tried with a stand-in."""

    name = "cupy"
    module = "cupy"
    title = "CuPy"
    reason = "cuRAND's host interface gives no state"
    needed = "random"

    def available(self) -> bool:
        """Tell whether CuPy is imported and finds a device."""
        cupy: Any = loaded(self.module, self.needed)
        return cupy is not None and bool(getattr(cupy, "is_available", lambda: True)())

    def seed(self, seed: int) -> None:
        """Do what `cupy.random.seed(seed)` does, but on every device; CuPy seeds the current one only."""
        cupy: Any = sys.modules[self.module]
        for index in range(cupy.cuda.runtime.getDeviceCount()):
            with cupy.cuda.Device(index):
                cupy.random.seed(fit(seed, self.name))


class TensorFlow(_SeedOnly):
    """TensorFlow's global seed. Written against its documentation, tried with a stand-in."""

    name = "tensorflow"
    module = "tensorflow"
    title = "TensorFlow"
    reason = "its stateful ops count inside their kernels"
    needed = "random"

    def seed(self, seed: int) -> None:
        """Do what `tensorflow.random.set_seed(seed)` does."""
        sys.modules[self.module].random.set_seed(fit(seed, self.name))
