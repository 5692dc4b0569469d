"""Seeds from the run seed for generators that are made or seeded without one while control is active."""

from __future__ import annotations

import functools
import random
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame
from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches, StaticTypePatches
from samebits.rng.active import PROCESS
from samebits.rng.seeds import derive

if TYPE_CHECKING:
    from types import FrameType

    from samebits.rng.active import Active

# Their generators are to differ between processes: `tempfile` draws the names of files with one.
_LEFT_ALONE = ("tempfile",)
_SKIPPED = ("random", "torch", "samebits")


class GeneratorControl:
    """Gives a seed to code that asks for entropy to seed a generator, and follows torch's generator objects.

    - `random.Random()`, `random.Random.seed()`, `random.seed()`. All take entropy in one method.
    - everything of NumPy: `default_rng()`, `RandomState()`, `SeedSequence()`, `PCG64()`,
      `numpy.random.seed()`. All take it in one function of `numpy.random.bit_generator`, under whatever name
      the caller imported them.
    - `torch.Generator.seed()`, and so `torch.seed()`, `torch.cuda.seed_all()`. A `torch.Generator()` needs
      none: it starts from a constant.

    A seed follows from the run seed, the module that asks and how often that module has asked
    (`Active.next_seed`), so that one more generator in a library does not change the script's. Intended
    entropy stays entropy: `os.urandom`, `secrets`, `random.SystemRandom`, `uuid`, names of temporary files.

    Args:
        active: gives the seeds; an activation inside of it takes over.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._patches = Patches()
        self._static = StaticTypePatches()
        self._imports = PostImport()

    def install(self) -> None:
        """Begin, with libraries that are imported later as well."""
        self._control_python()
        self._imports.install()
        self._imports.on_import("numpy.random", self._control_numpy)
        self._imports.on_torch(self._control_torch)

    def remove(self) -> None:
        """Stop; generators keep the seeds that they got."""
        self._imports.remove()
        self._patches.restore()
        self._static.restore()

    def _next_seed(self, library: str) -> int | None:
        """Return a seed for the caller; None when there is no run seed, or the caller is to get entropy."""
        active = PROCESS.current
        if active is None or active.seed is None:
            active = self._active
        module = _asking_module()
        if active.seed is None or module in _LEFT_ALONE or not active.control.seeds(library):
            return None
        return active.next_seed(f"{library} generator of {module}")

    def _control_python(self) -> None:
        original, control = random.Random.seed, self

        @functools.wraps(original)
        def seed(self: random.Random, a: Any = None, *args: Any, **kwargs: Any) -> None:
            original(self, control._next_seed("python") if a is None else a, *args, **kwargs)

        self._patches.set(random.Random, "seed", seed)
        # The module's function is a method of a hidden instance, bound when `random` was imported.
        function = random.seed

        @functools.wraps(function)
        def seed_hidden(a: Any = None, *args: Any, **kwargs: Any) -> None:
            function(control._next_seed("python") if a is None else a, *args, **kwargs)

        self._patches.set(random, "seed", seed_hidden)

    def _control_numpy(self, _module: Any) -> None:
        bit_generator: Any = sys.modules["numpy.random.bit_generator"]
        original = bit_generator.randbits

        @functools.wraps(original)
        def randbits(count: int) -> int:
            seed = self._next_seed("numpy")
            if seed is None:
                return int(original(count))
            return (derive(seed, "upper half") << 64 | seed) & ((1 << count) - 1)  # count is 128

        self._patches.set(bit_generator, "randbits", randbits)

    def _control_torch(self, torch: Any) -> None:
        generator_type, control = torch.Generator, self
        original = generator_type.seed

        def seed(self: Any) -> int:
            derived = control._next_seed("torch")
            if derived is None:
                return int(original(self))
            self.manual_seed(derived)
            return derived

        self._static.set(generator_type, "seed", seed)
        self._follow(generator_type)

    def _follow(self, generator_type: Any) -> None:
        """Keep weak references to the generators that are made.

        The type is written in C and immutable. Its metaclass is neither, and sees every call of the type
        under whatever name. Where the metaclass is `type` itself (older torch), generators have to be
        registered.
        """
        metaclass = type(generator_type)
        if metaclass is type:
            return
        original = metaclass.__call__

        @functools.wraps(original)
        def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(cls, *args, **kwargs)
            if cls is generator_type or generator_type in cls.__mro__:
                PROCESS.torch_generators.add(made)
            return made

        self._patches.set(metaclass, "__call__", call)


def _asking_module() -> str:
    """Return the module whose code is nearest on the stack, except generators' own modules and torch."""
    frame: FrameType | None = calling_frame(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _SKIPPED:
            return "__main__" if name == "__mp_main__" else name  # its name in spawned children
        frame = frame.f_back
    return ""
