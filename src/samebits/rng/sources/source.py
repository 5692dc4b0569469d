"""The interface of an RNG source, the facts about its library, and the encoding of its state."""

from __future__ import annotations

import ctypes
import json
import operator
import sys
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

Position = tuple[int, int]
"""A point of a generator's stream: the block of numbers, and how many of them were drawn."""
UNSAVED_SLUG = "rng-not-saved"
SEED_LIBRARIES = "seed-libraries"
"""The intervention that seeds the generators of libraries that no cause is named after."""
_DTYPES = ("uint8", "uint32", "uint64", "int32", "int64", "float64")


class RngSource(Protocol):
    """**Protocol:** one generator, or one set of them, that can be seeded, saved and restored."""

    @property
    def name(self) -> str:
        """The name that the user sees, such as `numpy`."""

    @property
    def module(self) -> str:
        """The module whose import makes the generator exist; empty when it always does."""

    def available(self) -> bool:
        """Tell whether it exists in this process now. Imports nothing."""

    def seed(self, seed: int) -> None:
        """Seed it.

        Args:
            seed: from 0 to 2**64 - 1; `seeds.fit` makes 32 bits of it.
        """

    def get_state(self) -> bytes:
        """Return its state, without pickle: JSON or raw bytes.

        Raises:
            SamebitsError: it has no state that can be read; `rng-not-saved`.
        """

    def set_state(self, state: bytes) -> None:
        """Put back the state that `get_state` gave.

        Raises:
            Exception: any, when the state does not fit; the caller makes one clear error of it.
        """

    def version(self) -> str:
        """Return the library and its version, as a user would say it: `numpy 2.4.6`."""


class Library(NamedTuple):
    """A library whose generators a cause is named after (`unseeded-numpy`).

    Args:
        name: the name of its global generator's source.
        title: its name in a report.
        intervention: name of the one that seeds its generators.
        draws: the beginning of the names of draws from its generators.
        fresh: draws of entropy that becomes a generator's state.
        own: the draws among them that make a separate generator, which a seed for the global one does not
            reach.
        imported: the module that a script imports for `seed_call`.
        seed_call: seeds the global generator, given the name of the module and a number.
        seeders: full names of the functions that seed the global generator.
        generators: full names of the functions and classes that make a generator.
    """

    name: str
    title: str
    intervention: str
    draws: str
    fresh: tuple[str, ...]
    own: tuple[str, ...]
    imported: str
    seed_call: str
    seeders: tuple[str, ...]
    generators: tuple[str, ...] = ()


class StateFunction(NamedTuple):
    """A function of a library that seeds a global generator, or puts a state of it back.

    Args:
        owners: the objects that hold it, as paths below the source's module; empty for the module itself.
        name: its name there.
        text: its name in a report; empty for one that puts a state back.
    """

    owners: tuple[str, ...]
    name: str
    text: str = ""

    @property
    def seeds(self) -> bool:
        """Tell whether it seeds; otherwise it puts a state back."""
        return bool(self.text)

    def owners_in(self, module: Any) -> list[Any]:
        """Return the objects that hold it, given the module of the source."""
        return [operator.attrgetter(path)(module) if path else module for path in self.owners]


class BuiltInSource:
    """**Base class** of the sources that samebits brings: `RngSource`, and what else samebits asks of them.

    Attributes:
        name: see `RngSource`.
        module: see `RngSource`.
        title: the name of its library in a report, for a source that no cause is named after.
        library: the library that a cause is named after; None for any other.
        intervention: the name of the intervention that seeds this source.
        per_sample: it is cheap enough to be seeded for each sample that a loader loads. Python's, NumPy's and
            torch's global generators are seeded for each sample in any case.
        functions: those that seed it or put its state back, and that a script may call.
        record_order: the position of its states among those that a record digests; 0 for a source that is not
            recorded.
        recorded_functions: those whose calls a record notes as seedings.
        seed_calls: the beginnings of the calls that seed it in a record, such as `random.`.
    """

    name: str
    module: str
    title = ""
    library: Library | None = None
    intervention = SEED_LIBRARIES
    per_sample = False
    functions: tuple[StateFunction, ...] = ()
    record_order = 0
    recorded_functions: tuple[StateFunction, ...] = ()
    seed_calls: tuple[str, ...] = ()

    @abstractmethod
    def available(self) -> bool:
        """See `RngSource`."""

    @abstractmethod
    def seed(self, seed: int) -> None:
        """See `RngSource`."""

    @abstractmethod
    def get_state(self) -> bytes:
        """See `RngSource`."""

    @abstractmethod
    def set_state(self, state: bytes) -> None:
        """See `RngSource`."""

    @abstractmethod
    def version(self) -> str:
        """See `RngSource`."""

    def state_reader(self) -> Callable[[], Sequence[tuple[str, Any]]]:
        """Return a function that gives (name, tensor of uint8) of each generator, for a record to digest.

        It is made once torch is imported.
        """
        return tuple

    def earlier_seed(self) -> str:
        """Return the text that a record has for a seeding before it began; empty for none."""
        return ""

    def position_reader(self) -> Callable[[], Mapping[str, Position]]:
        """Return a function that gives the generators' positions by name, without copying their states.

        It gives none where they cannot be read, or where it would have to wait for a device.
        """
        return dict


@runtime_checkable
class GeneratorObjects(Protocol):
    """**Protocol:** a source that also knows the generator objects of its library, global or not."""

    @property
    def name(self) -> str:
        """The name of the library."""

    def kinds(self) -> tuple[type, ...]:
        """Return the types of the objects that hold a state, as far as the library is imported."""

    def owns(self, generator: Any) -> bool:
        """Tell whether the object is a generator of the library, with a state."""

    def read(self, generator: Any) -> Any:
        """Return the state, as the library gives it; later draws do not change it."""

    def write(self, generator: Any, state: Any) -> None:
        """Put back the state that `read` gave."""

    def encode(self, state: Any) -> bytes:
        """Encode a state that `read` gave, without pickle."""

    def decode(self, data: bytes) -> Any:
        """Decode the result of `encode`.

        Raises:
            ValueError: it is not a state of the library.
        """

    def version(self) -> str:
        """Return the version of the library."""


def loaded(name: str, *needed: str) -> ModuleType | None:
    """Return the module once it has been imported as far as these attributes, else None.

    Its import need not be complete, which it is only after the callbacks of `PostImport`.
    """
    module = sys.modules.get(name)
    return module if all(hasattr(module, attribute) for attribute in needed) else None


def memory_tensor(address: int, n_bytes: int) -> Any:
    """Return a tensor of uint8 over memory that a library holds."""
    torch: Any = sys.modules["torch"]
    return torch.frombuffer((ctypes.c_ubyte * n_bytes).from_address(address), dtype=torch.uint8)


def version_of(name: str) -> str:
    """Return name and version of an imported library."""
    return f"{name} {getattr(sys.modules.get(name), '__version__', 'of unknown version')}"


def unsaved(library: str, reason: str) -> SamebitsError:
    """Return the error for a generator whose state cannot be read."""
    message = (
        f"the generator of {library} can be seeded, but not saved or restored: {reason}; "
        "where that matters, draw from a generator that can be saved"
    )
    return SamebitsError(message, slug=UNSAVED_SLUG)


def expect(condition: Any, reason: str) -> None:
    """Refuse a state.

    Raises:
        ValueError: the condition does not hold.
    """
    if not condition:
        raise ValueError(reason)


def to_json(state: Any) -> bytes:
    """Encode a state.

    Args:
        state: numbers, text, lists, dicts and NumPy arrays of at most one dimension.

    Raises:
        TypeError: it contains something else.
    """
    return json.dumps(state, default=_encode_numpy, separators=(",", ":")).encode()


def from_json(data: bytes) -> Any:
    """Decode the result of `to_json`.

    Raises:
        ValueError: it is not such an encoding.
    """
    try:
        return json.loads(data, object_hook=_decode_numpy)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _encode_numpy(value: Any) -> Any:
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.ndarray) and value.dtype.name in _DTYPES and value.ndim == 1:
        little = value.astype(value.dtype.newbyteorder("<"))
        return {"dtype": value.dtype.name, "hex": little.tobytes().hex()}
    if isinstance(value, (numpy.integer, numpy.floating)):
        return value.item()
    raise TypeError(f"a state holds {type(value).__name__}; expected numbers, text, lists and arrays")


def _decode_numpy(value: dict[str, Any]) -> Any:
    if value.keys() != {"dtype", "hex"}:
        return value
    import numpy as np

    name = value["dtype"]
    if name not in _DTYPES:
        raise ValueError(f"an array of dtype {name!r}")
    dtype = np.dtype(name)
    data = np.frombuffer(bytes.fromhex(value["hex"]), dtype.newbyteorder("<"))
    return data.astype(dtype)
