"""Generator objects: those that are registered by name, and those that are alive at a moment."""

from __future__ import annotations

import gc
import random
import warnings
import weakref
from itertools import compress
from typing import TYPE_CHECKING, Any

from samebits.determinism.process import PROCESS
from samebits.determinism.rng_sources.encoding import from_json, to_json
from samebits.determinism.rng_sources.numpy_global import check_bits
from samebits.determinism.rng_sources.python_random import PythonRandom
from samebits.determinism.rng_sources.source import expect, loaded, version_of
from samebits.determinism.rng_sources.torch_devices import bytes_to_tensor, tensor_to_bytes
from samebits.errors import SamebitsError
from samebits.hooks.interruptions import pass_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.determinism.rng_sources.source import RngSource

_PYTHON, _NUMPY, _TORCH = "python", "numpy", "torch"


def family_of(generator: Any) -> str:
    """Whose generator that is: `python`, `numpy` or `torch`; empty when it is none with a state."""
    if isinstance(generator, random.Random):
        return "" if isinstance(generator, random.SystemRandom) else _PYTHON
    if isinstance(generator, _numpy_types(with_wrapper=True)):
        return _NUMPY
    torch: Any = loaded("torch", "Generator")
    return _TORCH if torch is not None and isinstance(generator, torch.Generator) else ""


def _numpy_types(*, with_wrapper: bool) -> tuple[type, ...]:
    """The types that have a state; with `numpy.random.Generator`, which has its bit generator's."""
    numpy_random: Any = loaded("numpy.random", "RandomState", "BitGenerator", "Generator")
    if numpy_random is None:
        return ()
    holders = (numpy_random.RandomState, numpy_random.BitGenerator)
    return (*holders, numpy_random.Generator) if with_wrapper else holders


def _holder(generator: Any) -> Any:
    """The object that has the state."""
    return getattr(generator, "bit_generator", generator)  # of numpy.random.Generator


def read(generator: Any) -> Any:
    """The state, as its library gives it; later draws do not change it."""
    family, holder = family_of(generator), _holder(generator)
    if family == _PYTHON:
        return holder.getstate()
    if family == _TORCH:
        return holder.get_state()
    return holder.get_state(legacy=False) if hasattr(holder, "get_state") else holder.state


def write(generator: Any, state: Any) -> None:
    """Put back what `read` gave."""
    family, holder = family_of(generator), _holder(generator)
    if family == _PYTHON:
        holder.setstate(state)
    elif family == _TORCH or hasattr(holder, "set_state"):
        holder.set_state(state)
    else:
        holder.state = state


class RegisteredGenerator:
    """A generator object as an RNG source.

    Args:
        name: `generator:` and the name that it was registered under.
        generator: the object.
    """

    module = ""

    def __init__(self, name: str, generator: Any) -> None:
        self.name, self.generator = name, generator

    def available(self) -> bool:
        """It was alive a moment ago."""
        return True

    def seed(self, seed: int) -> None:
        """Not done: an object is seeded where it is made."""

    def get_state(self) -> bytes:
        """Torch's bytes, or JSON."""
        state = read(self.generator)
        return tensor_to_bytes(state) if family_of(self.generator) == _TORCH else to_json(state)

    def set_state(self, state: bytes) -> None:
        """Put back what `get_state` gave."""
        family = family_of(self.generator)
        if family == _TORCH:
            write(self.generator, bytes_to_tensor(state))
            return
        fields = from_json(state)
        if family == _PYTHON:
            version, words, gauss_next = fields
            fields = (version, tuple(words), gauss_next)
        else:
            expect(isinstance(fields, dict) and isinstance(fields.get("state"), dict), "no state of NumPy")
            check_bits(fields)
        write(self.generator, fields)

    def version(self) -> str:
        """The version of its library."""
        family = family_of(self.generator)
        return PythonRandom().version() if family == _PYTHON else version_of(family)


def registered_sources() -> list[RngSource]:
    """The generators that were registered and are alive."""
    found = [(name, get()) for name, get in sorted(PROCESS.registered.items())]
    return [RegisteredGenerator(f"generator:{name}", value) for name, value in found if value is not None]


def register(generator: Any, name: str | None = None) -> str:
    """Have `save_states` save that generator, and `isolated` and `restore_states` put it back.

    NumPy's generators cannot be referred to weakly: they live until `unregister`. Others are forgotten when
    the program forgets them.

    Args:
        generator: `random.Random`, `numpy.random.Generator`, `RandomState` or a bit generator, or
            `torch.Generator`.
        name: what its state is saved under; by default its library and a number, by order.

    Returns:
        The name.

    Raises:
        SamebitsError: it is none of these, `generator-type`; another one has that name, `generator-name`.
    """
    family = family_of(generator)
    if not family:
        message = (
            f"what was given to be registered is {_describe(generator)}; expected random.Random, "
            "numpy.random.Generator, RandomState or BitGenerator, or torch.Generator"
        )
        raise SamebitsError(message, slug="generator-type")
    if name is None:
        name = _free_name(family)
    known = PROCESS.registered.get(name, _nothing)()
    if known is not None and known is not generator:
        message = f"another generator is registered as {name!r}; give this one a name of its own"
        raise SamebitsError(message, slug="generator-name")
    PROCESS.registered[name] = _reference(generator)
    return name


def unregister(name: str) -> None:
    """Forget the generator registered under that name; one that is not known is forgotten already."""
    PROCESS.registered.pop(name, None)


def _nothing() -> None:
    """The reference to a generator that nobody registered."""


def _reference(generator: Any) -> Any:
    try:
        return weakref.ref(generator)
    except TypeError:
        return lambda: generator


def _free_name(family: str) -> str:
    number = 0
    while f"{family}-{number}" in PROCESS.registered:
        number += 1
    return f"{family}-{number}"


class LiveStates:
    """Generator objects and their states at one moment.

    Args:
        objects: which ones.
    """

    def __init__(self, objects: Iterable[Any]) -> None:
        self._states = [(found, state) for found in objects for state in _try_read(found)]

    @classmethod
    def of_now(cls) -> LiveStates:
        """All that are alive.

        Those of Python and NumPy are found among what the garbage collector tracks, however they were
        made: about 0.1 s with torch and scikit-learn imported. It does not track torch's, nor show what
        `gc.freeze` set apart.
        """
        objects = gc.get_objects()
        kinds = (random.Random, *_numpy_types(with_wrapper=False))
        types = {found for found in set(map(type, objects)) if issubclass(found, kinds)}
        types = {found for found in types if not issubclass(found, random.SystemRandom)}
        alive = list(compress(objects, map(types.__contains__, map(type, objects))))
        return cls([*alive, *PROCESS.torch_generators])

    def restore(self) -> list[str]:
        """Put them back.

        Returns:
            What failed.
        """
        return [failure for found, state in self._states for failure in _try_write(found, state)]


def _try_write(generator: Any, state: Any) -> list[str]:
    """Set the state; gives what failed."""
    try:
        write(generator, state)
    except Exception as error:  # noqa: BLE001 - a subclass may do anything
        pass_on(error)
        return [f"the state of {_describe(generator)} cannot be put back: {error!r}"]
    return []


def _try_read(generator: Any) -> list[Any]:
    """The state, or nothing with a warning: a subclass may keep no state, or one that it does not give."""
    try:
        return [read(generator)]
    except Exception as error:  # noqa: BLE001 - a subclass may do anything
        pass_on(error)
        text = f"{_describe(generator)} is not isolated: its state cannot be read ({error!r})"
        warnings.warn(f"samebits: {text}", stacklevel=2)
        return []


def _describe(generator: Any) -> str:
    kind = type(generator)
    return f"an object of type {kind.__module__}.{kind.__qualname__}"
