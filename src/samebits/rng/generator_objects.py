"""Generator objects: those that are registered by name, and those that are alive at a moment."""

from __future__ import annotations

import gc
import warnings
import weakref
from itertools import compress
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import pass_on
from samebits.errors import SamebitsError
from samebits.rng.active import PROCESS
from samebits.rng.sources import WITH_OBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.rng.sources.source import GeneratorObjects, RngSource


def _source_of(generator: Any) -> GeneratorObjects | None:
    """Return the RNG source of the library that made a generator; None when that has no state."""
    return next((source for source in WITH_OBJECTS if source.owns(generator)), None)


def family_of(generator: Any) -> str:
    """Return the library that made a generator: `python`, `numpy` or `torch`; empty for any other."""
    source = _source_of(generator)
    return "" if source is None else source.name


def read(generator: Any) -> Any:
    """Return the state, as its library gives it; later draws do not change it."""
    return _required(generator).read(generator)


def write(generator: Any, state: Any) -> None:
    """Put back the state that `read` gave."""
    _required(generator).write(generator, state)


def _required(generator: Any) -> GeneratorObjects:
    source = _source_of(generator)
    if source is None:
        raise TypeError(f"{_describe(generator)} is no generator with a state")
    return source


class RegisteredGenerator:
    """A generator object as an RNG source.

    Args:
        name: `generator:` and the name that it was registered under.
        generator: the object.
    """

    module = ""

    def __init__(self, name: str, generator: Any) -> None:
        self.name, self._generator = name, generator
        self._library = _required(generator)

    def available(self) -> bool:
        """Return True: it was alive a moment ago."""
        return True

    def seed(self, seed: int) -> None:
        """Do nothing: an object is seeded where it is made."""

    def get_state(self) -> bytes:
        """Return the state in the form of the library's own source: torch's bytes, or JSON."""
        return self._library.encode(self._library.read(self._generator))

    def set_state(self, state: bytes) -> None:
        """Put back the state that `get_state` gave."""
        self._library.write(self._generator, self._library.decode(state))

    def version(self) -> str:
        """Return the version of its library."""
        return self._library.version()


def registered_sources() -> list[RngSource]:
    """Return the generators that were registered and are alive."""
    references = [(name, get()) for name, get in sorted(PROCESS.registered.items())]
    return [
        RegisteredGenerator(f"generator:{name}", value) for name, value in references if value is not None
    ]


def register(generator: Any, name: str | None = None) -> str:
    """Make `save_states` save a generator, and `isolated` and `restore_states` put it back.

    NumPy's generators cannot be referred to weakly: they live until `unregister`. Others are forgotten when
    the program forgets them.

    Args:
        generator: `random.Random`, `numpy.random.Generator`, `RandomState` or a bit generator, or
            `torch.Generator`.
        name: the name under which its state is saved; by default its library and a number.

    Returns:
        The name.

    Raises:
        SamebitsError: it is none of these, `generator-type`; another generator has that name,
            `generator-name`.
    """
    family = family_of(generator)
    if not family:
        message = (
            f"cannot register {_describe(generator)}; expected random.Random, "
            "numpy.random.Generator, RandomState or BitGenerator, or torch.Generator"
        )
        raise SamebitsError(message, slug="generator-type")
    if name is None:
        name = _free_name(family)
    reference = PROCESS.registered.get(name)
    known = None if reference is None else reference()
    if known is not None and known is not generator:
        message = f"another generator is registered as {name!r}; give this one another name"
        raise SamebitsError(message, slug="generator-name")
    PROCESS.registered[name] = _reference(generator)
    return name


def unregister(name: str) -> None:
    """Forget the generator registered under that name, if there is one."""
    PROCESS.registered.pop(name, None)


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
        objects: the generators.
    """

    def __init__(self, objects: Iterable[Any]) -> None:
        self._states = [(generator, state) for generator in objects for state in _try_read(generator)]

    @classmethod
    def of_now(cls) -> LiveStates:
        """Return the states of all generator objects that are alive.

        Those of Python and NumPy are looked up among the objects that the garbage collector tracks, which
        takes about 0.1 s with torch and scikit-learn imported. It does not track torch's, nor show objects
        that `gc.freeze` set apart.
        """
        objects = gc.get_objects()
        kinds = tuple(kind for source in WITH_OBJECTS for kind in source.kinds())
        types = {kind for kind in set(map(type, objects)) if issubclass(kind, kinds)}
        candidates = compress(objects, map(types.__contains__, map(type, objects)))
        alive = [generator for generator in candidates if _source_of(generator) is not None]
        return cls([*alive, *PROCESS.torch_generators])

    def restore(self) -> list[str]:
        """Restore the states.

        Returns:
            Error messages of those that failed.
        """
        return [failure for generator, state in self._states for failure in _try_write(generator, state)]


def _try_write(generator: Any, state: Any) -> list[str]:
    """Set the state, and return error messages."""
    try:
        write(generator, state)
    except Exception as error:  # noqa: BLE001 - a subclass may do anything
        pass_on(error)
        return [f"the state of {_describe(generator)} cannot be put back: {error!r}"]
    return []


def _try_read(generator: Any) -> list[Any]:
    """Return the state, or nothing with a warning: a subclass may have none, or not give it."""
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
