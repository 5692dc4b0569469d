"""Torch's default generators: the CPU's and those of devices."""

from __future__ import annotations

import json
import sys
from typing import Any

from samebits.determinism.rng_sources.source import expect, loaded, version_of
from samebits.determinism.seeds import fit
from samebits.torch_private import clear_pending_seeds, in_bad_fork, pending_seeds

_FIT = "torch"  # all devices get what `torch.manual_seed` would give them


def tensor_to_bytes(state: Any) -> bytes:
    """A state of torch, a tensor of uint8."""
    return bytes(state.numpy())


def bytes_to_tensor(data: bytes) -> Any:
    """The tensor that `tensor_to_bytes` read.

    Raises:
        ValueError: there is nothing.
    """
    torch: Any = sys.modules["torch"]
    expect(data, "it is empty")
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


class TorchCpu:
    """Torch's default generator on the CPU."""

    name = "torch"
    module = "torch"

    def available(self) -> bool:
        """Whether torch is imported."""
        return loaded(self.module, "default_generator", "get_rng_state") is not None

    def seed(self, seed: int) -> None:
        """As `torch.manual_seed(seed)`, for the CPU only."""
        sys.modules["torch"].default_generator.manual_seed(fit(seed, _FIT))

    def get_state(self) -> bytes:
        """The bytes of `torch.get_rng_state()`."""
        return tensor_to_bytes(sys.modules["torch"].get_rng_state())

    def set_state(self, state: bytes) -> None:
        """As `torch.set_rng_state`, which checks the size and the position."""
        sys.modules["torch"].set_rng_state(bytes_to_tensor(state))

    def version(self) -> str:
        """Torch's version."""
        return version_of("torch")


class LazyDevices:
    """The default generators of all devices of one kind, CUDA or XPU.

    Neither seeding nor saving starts the device: until its first use the state is the seeds that wait for it.

    Args:
        name: `cuda` or `xpu`.
    """

    module = "torch"

    def __init__(self, name: str) -> None:
        self.name = name

    def available(self) -> bool:
        """Whether torch is imported, is built for such devices, and this process may use them."""
        torch: Any = loaded(self.module, "backends", "version", self.name)
        if torch is None:
            return False
        built = torch.backends.cuda.is_built() if self.name == "cuda" else torch.version.xpu is not None
        return bool(built) and not in_bad_fork(self._devices())

    def seed(self, seed: int) -> None:
        """As `torch.cuda.manual_seed_all(seed)`."""
        self._devices().manual_seed_all(fit(seed, _FIT))

    def get_state(self) -> bytes:
        """JSON: the state of each device in hexadecimal, or the seeds that wait."""
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
        found = len(fields["devices"])
        expect(found == count, f"it holds {found} devices of kind {self.name}, and there are {count}")
        devices.set_rng_state_all([bytes_to_tensor(bytes.fromhex(text)) for text in fields["devices"]])

    def version(self) -> str:
        """Torch's version."""
        return version_of("torch")

    def _devices(self) -> Any:
        return getattr(sys.modules["torch"], self.name)

    def _wait(self, seeds: list[list[Any]]) -> None:
        devices = self._devices()
        if devices.is_initialized():
            # Started meanwhile: what it would have begun with. Without a seed that was entropy.
            if not seeds:
                devices.seed_all()
        else:
            clear_pending_seeds(devices)
        for which, seed in seeds:
            expect(which in {"all", "current"}, f"{which!r} where `all` or `current` was expected")
            seed_devices = devices.manual_seed_all if which == "all" else devices.manual_seed
            seed_devices(seed)


class Mps:
    """The default generator of Apple's GPU."""

    name = "mps"
    module = "torch"

    def available(self) -> bool:
        """Whether torch is imported and can use the device."""
        torch: Any = loaded(self.module, "backends", "mps")
        return torch is not None and torch.backends.mps.is_available() and not in_bad_fork(torch.mps)

    def seed(self, seed: int) -> None:
        """As `torch.mps.manual_seed(seed)`."""
        sys.modules["torch"].mps.manual_seed(fit(seed, _FIT))

    def get_state(self) -> bytes:
        """The bytes of `torch.mps.get_rng_state()`."""
        return tensor_to_bytes(sys.modules["torch"].mps.get_rng_state())

    def set_state(self, state: bytes) -> None:
        """As `torch.mps.set_rng_state`."""
        sys.modules["torch"].mps.set_rng_state(bytes_to_tensor(state))

    def version(self) -> str:
        """Torch's version."""
        return version_of("torch")
