"""Torch's generators: the CPU's, those of devices, DTensor's, and objects of `torch.Generator`."""

from __future__ import annotations

import ctypes
import functools
import inspect
import json
import struct
import sys
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from samebits._torch.core import (
    clear_pending_seeds,
    default_generator,
    drop_dtensor_tracker,
    dtensor_states,
    in_bad_fork,
    pending_seeds,
    twister_head,
)
from samebits.rng.seeds import derive, fit
from samebits.rng.sources.source import BuiltInSource, Library, StateFunction, expect, loaded, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from samebits.rng.sources.source import GeneratorObjects, Position

TORCH = Library(
    name="torch",
    title="torch",
    intervention="seed-torch",
    draws="torch.",
    fresh=("torch.Generator.seed",),
    own=(),
    imported="torch",
    seed_call="{}.manual_seed({})",
    seeders=("torch.manual_seed", "torch.random.manual_seed"),
)
_FIT = TORCH.name  # all devices get what `torch.manual_seed` would give them
_HEAD = 40  # bytes of the CPU generator's state that hold its position
_PHILOX = struct.Struct("<QQ")  # seed and offset


def tensor_to_bytes(state: Any) -> bytes:
    """Return the bytes of a state of torch, a tensor of uint8."""
    return bytes(state.numpy())


def bytes_to_tensor(data: bytes) -> Any:
    """Return the tensor that `tensor_to_bytes` read.

    Raises:
        ValueError: the data are empty.
    """
    torch: Any = sys.modules["torch"]
    expect(data, "it is empty")
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


class TorchSource(BuiltInSource):
    """**Base class** of the default generators that torch or a backend of it brings."""

    module = "torch"
    library = TORCH
    intervention = TORCH.intervention
    seed_calls: tuple[str, ...] = ("torch.",)

    def version(self) -> str:
        """Return torch's version."""
        return version_of("torch")


class TorchCpu(TorchSource):
    """Torch's default generator on the CPU."""

    name = TORCH.name
    functions = (
        StateFunction(("", "random"), "manual_seed", "torch.manual_seed"),
        StateFunction(("", "random"), "set_rng_state"),
    )
    record_order = 1
    recorded_functions = (functions[0], StateFunction(("", "random"), "seed", "torch.seed"))

    def available(self) -> bool:
        """Tell whether torch is imported."""
        return loaded(self.module, "default_generator", "get_rng_state") is not None

    def seed(self, seed: int) -> None:
        """Do what `torch.manual_seed(seed)` does, for the CPU only."""
        sys.modules["torch"].default_generator.manual_seed(fit(seed, _FIT))

    def get_state(self) -> bytes:
        """Return the bytes of `torch.get_rng_state()`."""
        return tensor_to_bytes(sys.modules["torch"].get_rng_state())

    def set_state(self, state: bytes) -> None:
        """Do what `torch.set_rng_state` does, which checks the size and the position."""
        sys.modules["torch"].set_rng_state(bytes_to_tensor(state))

    def position_reader(self) -> Callable[[], Mapping[str, Position]]:
        """Return a function that reads the position of the CPU's generator."""

        def read() -> Mapping[str, Position]:
            head = _first_bytes(default_generator(), _HEAD)
            position = None if head is None else twister_head(head)
            return {} if position is None else {self.name: position}

        return read

    def state_reader(self) -> Callable[[], Sequence[tuple[str, Any]]]:
        """Read the CPU's generator by torch's function."""
        torch: Any = sys.modules["torch"]
        return lambda: ((self.name, torch.get_rng_state()),)

    def earlier_seed(self) -> str:
        """Name torch's seed, which it knows."""
        return f"torch.initial_seed() -> {sys.modules['torch'].initial_seed()}"

    def seeder(self) -> Callable[[int], None]:
        """Return a function that does what `torch.manual_seed` does to the CPU's generator."""
        return unwrapped_method("manual_seed")

    def kinds(self) -> tuple[type, ...]:
        """Return none, because the garbage collector does not track `torch.Generator`."""
        return ()

    def owns(self, generator: Any) -> bool:
        """Tell whether it is a `torch.Generator`, on any device."""
        torch: Any = loaded(self.module, "Generator")
        return torch is not None and isinstance(generator, torch.Generator)

    def read(self, generator: Any) -> Any:
        """Return a tensor of uint8."""
        return generator.get_state()

    def write(self, generator: Any, state: Any) -> None:
        """Call its `set_state`."""
        generator.set_state(state)

    def encode(self, state: Any) -> bytes:
        """Return the bytes of the tensor."""
        return tensor_to_bytes(state)

    def decode(self, data: bytes) -> Any:
        """Return the tensor."""
        return bytes_to_tensor(data)


def unwrapped_method(method: str) -> Callable[[Any], Any]:
    """Return a method of torch's default generator without control's wrappers; takes 40 microseconds."""
    generator: Any = default_generator()
    return functools.partial(inspect.unwrap(getattr(type(generator), method)), generator)


class LazyDevices(TorchSource):
    """**Base class** of the default generators of all devices of one kind.

    Neither seeding nor saving starts the device: until its first use its state is the seeds that wait.
    """

    def available(self) -> bool:
        """Tell whether torch is imported, is built for such devices, and this process may use them."""
        torch: Any = loaded("torch", "backends", "version", self.name)
        return torch is not None and self._is_built(torch) and not in_bad_fork(self._devices())

    def seed(self, seed: int) -> None:
        """Do what `torch.cuda.manual_seed_all(seed)` does."""
        self._devices().manual_seed_all(fit(seed, _FIT))

    def get_state(self) -> bytes:
        """Return JSON: the state of each device in hexadecimal, or the seeds that wait."""
        devices = self._devices()
        if not devices.is_initialized():
            return json.dumps({"waiting": pending_seeds(devices)}).encode()
        states = [tensor_to_bytes(state.cpu()).hex() for state in devices.get_rng_state_all()]
        return json.dumps({"devices": states}).encode()

    def set_state(self, state: bytes) -> None:
        """Set every device, or have the seeds wait again."""
        devices, fields = self._devices(), json.loads(state)
        if "waiting" in fields:
            self._wait(fields["waiting"])
            return
        count = devices.device_count()
        saved = len(fields["devices"])
        expect(saved == count, f"it holds {saved} devices of kind {self.name}, and there are {count}")
        devices.set_rng_state_all([bytes_to_tensor(bytes.fromhex(text)) for text in fields["devices"]])

    def state_reader(self) -> Callable[[], Sequence[tuple[str, Any]]]:
        """Read all devices once they are in use."""
        devices = self._devices()

        def read() -> Sequence[tuple[str, Any]]:
            if not devices.is_initialized():
                return ()
            return [(f"{self.name}:{i}", state) for i, state in enumerate(devices.get_rng_state_all())]

        return read

    def _devices(self) -> Any:
        return getattr(sys.modules["torch"], self.name)

    def _wait(self, seeds: list[list[Any]]) -> None:
        devices = self._devices()
        if devices.is_initialized():
            # It was started meanwhile: seed it as it would have begun, which is entropy without a seed.
            if not seeds:
                devices.seed_all()
        else:
            clear_pending_seeds(devices)
        for which, seed in seeds:
            expect(which in {"all", "current"}, f"{which!r} where `all` or `current` was expected")
            seed_devices = devices.manual_seed_all if which == "all" else devices.manual_seed
            seed_devices(seed)

    @abstractmethod
    def _is_built(self, torch: Any) -> bool:
        """Tell whether this torch was built for the devices."""


class Cuda(LazyDevices):
    """The default generators of all CUDA devices."""

    name = "cuda"
    functions = tuple(
        StateFunction(("cuda", "cuda.random"), function, f"torch.cuda.{function}")
        for function in ("manual_seed", "manual_seed_all")
    )
    record_order = 4
    seed_calls = (*TorchSource.seed_calls, "torch.cuda.")

    def position_reader(self) -> Callable[[], Mapping[str, Position]]:
        """Return a function that reads the Philox offsets of all devices; none before CUDA is used."""
        return _cuda_positions

    def _is_built(self, torch: Any) -> bool:
        return bool(torch.backends.cuda.is_built())


class Xpu(LazyDevices):
    """The default generators of all XPU devices."""

    name = "xpu"
    seed_calls = (*TorchSource.seed_calls, "torch.xpu.")

    def _is_built(self, torch: Any) -> bool:
        return torch.version.xpu is not None


def _cuda_positions() -> Mapping[str, Position]:
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if not getattr(cuda, "is_initialized", bool)():
        return {}
    heads = {
        f"cuda:{index}": _first_bytes(generator, _PHILOX.size)
        for index, generator in enumerate(getattr(cuda, "default_generators", ()))
    }
    return {name: _PHILOX.unpack(head) for name, head in heads.items() if head is not None}


def _first_bytes(generator: Any, count: int) -> bytes | None:
    """Return the beginning of a generator's state; None where it cannot be read or is shorter."""
    try:
        state = generator.get_state()
        is_long = state.device.type == "cpu" and state.numel() * state.element_size() >= count
        return ctypes.string_at(state.data_ptr(), count) if is_long else None
    except (AttributeError, TypeError, RuntimeError):  # not torch's own, or a CUDA graph is being captured
        return None


class Mps(TorchSource):
    """The default generator of Apple's GPU."""

    name = "mps"

    def available(self) -> bool:
        """Tell whether torch is imported and can use the device."""
        torch: Any = loaded(self.module, "backends", "mps")
        return torch is not None and torch.backends.mps.is_available() and not in_bad_fork(torch.mps)

    def seed(self, seed: int) -> None:
        """Do what `torch.mps.manual_seed(seed)` does."""
        sys.modules["torch"].mps.manual_seed(fit(seed, _FIT))

    def get_state(self) -> bytes:
        """Return the bytes of `torch.mps.get_rng_state()`."""
        return tensor_to_bytes(sys.modules["torch"].mps.get_rng_state())

    def set_state(self, state: bytes) -> None:
        """Do what `torch.mps.set_rng_state` does."""
        sys.modules["torch"].mps.set_rng_state(bytes_to_tensor(state))


_DTENSOR_DEFAULT = "parallel-rng"  # the state that DTensor's own `manual_seed` sets


class DTensorTracker(TorchSource):
    """DTensor's RNG tracker, where it keeps its own states.

    It has them in torch 2.6: a dict of Philox states (seed and offset, 8 bytes each), made by the first
    random op on a DTensor. In 2.13 it draws from the device's default generator and has nothing to save, so
    this source is not available there. A tracker starts from the position of the device's generator, so one
    that did not exist before can be dropped: the next op makes another.
    """

    name = "dtensor"
    module = ""  # the first random op makes the tracker, not the import

    def available(self) -> bool:
        """Tell whether a tracker with states exists."""
        return bool(dtensor_states())

    def seed(self, seed: int) -> None:
        """Give DTensor's default state that seed, and others one by their name, at offset 0."""
        states = dtensor_states()
        for name in sorted(states):
            own = fit(seed, _FIT) if name == _DTENSOR_DEFAULT else derive(seed, self.name, name)
            states[name] = bytes_to_tensor(own.to_bytes(8, "little") + bytes(8))

    def get_state(self) -> bytes:
        """Return JSON: the states in hexadecimal by name."""
        states = {name: tensor_to_bytes(state.cpu()).hex() for name, state in dtensor_states().items()}
        return json.dumps(states, sort_keys=True).encode()

    def set_state(self, state: bytes) -> None:
        """Set all states; they must have the names that are there."""
        states = dtensor_states()
        fields: dict[str, Any] = json.loads(state)
        expect(fields.keys() == states.keys(), f"it has {sorted(fields)}, and there are {sorted(states)}")
        fresh = {name: bytes_to_tensor(bytes.fromhex(text)) for name, text in fields.items()}
        for name, tensor in fresh.items():
            expect(tensor.numel() == 16, f"{name} has {tensor.numel()} bytes; expected 16")
        states.update(fresh)

    def forget(self) -> None:
        """Drop the tracker."""
        drop_dtensor_tracker()


if TYPE_CHECKING:
    _objects: GeneratorObjects = TorchCpu()
