"""Wrappers around the functions that write switches and seed generators: so it is known who calls them."""

from __future__ import annotations

import functools
import os
import random
from typing import TYPE_CHECKING, Any, Protocol

from samebits.determinism.rng_sources.numpy_global import NumpyGlobal
from samebits.determinism.rng_sources.python_random import PythonRandom
from samebits.hooks.frames import calling_frame
from samebits.hooks.patching import Patches
from samebits.hooks.static_types import StaticTypePatches
from samebits.torch_private import setter_places

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType, ModuleType

    from samebits.determinism.rng_sources.source import Position, StateFunction


class Listener(Protocol):
    """**Protocol:** what hears of calls; `DriftWatch`."""

    def wrote(self, setter: str, frame: FrameType) -> None:
        """A setter of torch was called."""

    def wrote_variable(self, name: str, frame: FrameType) -> None:
        """An environment variable was written."""

    def positions(self) -> dict[str, Position]:
        """Where the generators stand."""

    def seeded(self, before: dict[str, Position], frame: FrameType) -> None:
        """A function that seeds was called."""

    def restored(self, frame: FrameType) -> None:
        """A function that sets a generator's state was called."""


class SetterWrappers:
    """Puts wrappers in place, and takes them away.

    Args:
        listener: what hears of calls.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._patches = Patches()
        self._methods = StaticTypePatches()
        self._torch: Any = None

    def install_python(self) -> None:
        """Wrap what writes environment variables, and what seeds Python's generator."""
        for name in ("putenv", "unsetenv"):
            self._patches.set(os, name, self._variable_writer(getattr(os, name)))
        self._wrap(PythonRandom.functions, random)

    def install_numpy(self, random_module: ModuleType) -> None:
        """Wrap what seeds NumPy's global generator."""
        self._wrap(NumpyGlobal.functions, random_module)

    def install_torch(self, torch: Any, setters: list[str]) -> None:
        """Wrap those setters wherever torch holds them, and what seeds its generators."""
        for setter, owner, name in setter_places(setters):
            self._patches.set(owner, name, self._writer(setter, getattr(owner, name)))
        self._torch = torch
        # All ways to seed, such as `torch.manual_seed`, end in these methods of the global generators.
        for name in ("manual_seed", "seed"):
            self._methods.set(torch.Generator, name, self._method(name, self._seeder))
        self._methods.set(torch.Generator, "set_state", self._method("set_state", self._restorer))

    def remove(self) -> None:
        """Put everything back."""
        self._methods.restore()
        self._patches.restore()

    def _wrap(self, functions: Iterable[StateFunction], module: Any) -> None:
        for function in functions:
            wrap = self._seeder if function.seeds else self._restorer
            for owner in function.owners_in(module):
                self._patches.set(owner, function.name, wrap(getattr(owner, function.name)))

    def _writer(self, setter: str, original: Any) -> Any:
        listener = self._listener

        @functools.wraps(original)
        def write(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            listener.wrote(setter, calling_frame())
            return result

        return write

    def _variable_writer(self, original: Any) -> Any:
        listener = self._listener

        @functools.wraps(original)
        def write(name: Any, *value: Any) -> Any:
            listener.wrote_variable(os.fsdecode(name), calling_frame())
            return original(name, *value)

        return write

    def _seeder(self, original: Any) -> Any:
        listener = self._listener

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            before = listener.positions()
            result = original(*args, **kwargs)
            listener.seeded(before, calling_frame())
            return result

        return seed

    def _restorer(self, original: Any) -> Any:
        listener = self._listener

        @functools.wraps(original)
        def restore(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            listener.restored(calling_frame())
            return result

        return restore

    def _method(self, name: str, wrap: Any) -> Any:
        """A method of `torch.Generator` that is wrapped for the global generators only."""
        torch, original = self._torch, vars(self._torch.Generator)[name]
        wrapped = wrap(original)

        @functools.wraps(original)
        def method(generator: Any, *args: Any, **kwargs: Any) -> Any:
            devices = torch.cuda.default_generators
            if generator is torch.default_generator or any(generator is device for device in devices):
                return wrapped(generator, *args, **kwargs)
            return original(generator, *args, **kwargs)

        return method
