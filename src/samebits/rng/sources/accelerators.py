"""Default generators of devices that packages beside torch bring: Ascend, Cambricon, Gaudi, MUSA, XLA.

They are written for the interface that accelerate 1.15.0 uses (utils/random.py, `set_seed` and
`synchronize_rng_state`), and were tried with stand-ins, because none of these devices was at hand.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from samebits._torch.core import private_backend
from samebits.rng.seeds import fit
from samebits.rng.sources.source import expect, loaded, unsaved, version_of
from samebits.rng.sources.torch_devices import TorchSource, bytes_to_tensor, tensor_to_bytes

_XLA = "torch_xla.core.xla_model"
PACKAGES = {
    "npu": "torch_npu",
    "mlu": "torch_mlu",
    "hpu": "habana_frameworks.torch",
    "musa": "torch_musa",
    "sdaa": "torch_sdaa",
}
"""Name of a backend -> the package that registers it."""


class Accelerator(TorchSource):
    """The default generators of all devices of one kind that registers itself as a module of torch.

    Args:
        name: the name of that module, such as `npu` for `torch.npu`.
        module: the package that brings it.
    """

    def __init__(self, name: str, module: str = "torch") -> None:
        self.name = name
        self.module = module

    def available(self) -> bool:
        """Tell whether the module exists and finds a device."""
        devices = self._devices()
        usable = hasattr(devices, "manual_seed_all") and hasattr(devices, "is_available")
        return usable and bool(devices.is_available())

    def seed(self, seed: int) -> None:
        """Do what `torch.npu.manual_seed_all(seed)` does."""
        self._devices().manual_seed_all(fit(seed, "torch"))

    def get_state(self) -> bytes:
        """Return JSON: the state of each device in hexadecimal.

        Raises:
            SamebitsError: the package cannot give them; `rng-not-saved`.
        """
        read = getattr(self._devices(), "get_rng_state_all", None)
        if read is None or not hasattr(self._devices(), "set_rng_state_all"):
            raise unsaved(f"torch.{self.name}", "it has no get_rng_state_all and set_rng_state_all")
        return json.dumps([tensor_to_bytes(state.cpu()).hex() for state in read()]).encode()

    def set_state(self, state: bytes) -> None:
        """Set every device."""
        listed, count = json.loads(state), self._devices().device_count()
        expect(
            len(listed) == count, f"it holds {len(listed)} devices of kind {self.name}, and there are {count}"
        )
        self._devices().set_rng_state_all([bytes_to_tensor(bytes.fromhex(text)) for text in listed])

    def version(self) -> str:
        """Return the version of the package that brings the device, else torch's."""
        return version_of(self.module if self.module in sys.modules else "torch")

    def _devices(self) -> Any:
        return getattr(loaded("torch", "default_generator"), self.name, None)


class PrivateBackend(Accelerator):
    """A backend that another package registered as torch's PrivateUse1, under any name.

    Args:
        known: names of the backends that have their own source.
    """

    def __init__(self, known: tuple[str, ...]) -> None:
        super().__init__("privateuse1")
        self._known = known

    def _devices(self) -> Any:
        name = private_backend() if loaded("torch", "default_generator") is not None else ""
        return None if name in ("", *self._known) else getattr(sys.modules["torch"], name, None)


class Xla(TorchSource):
    """The generator of the current XLA device of this process."""

    name = "xla"
    module = _XLA

    def available(self) -> bool:
        """Tell whether torch_xla is imported."""
        return loaded(_XLA, "set_rng_state", "get_rng_state") is not None

    def seed(self, seed: int) -> None:
        """Do what `xla_model.set_rng_state(seed)` does."""
        self._model().set_rng_state(fit(seed, "torch"))

    def get_state(self) -> bytes:
        """Return JSON: the number that `xla_model.get_rng_state()` gives."""
        return json.dumps(int(self._model().get_rng_state())).encode()

    def set_state(self, state: bytes) -> None:
        """Do what `xla_model.set_rng_state` does."""
        number = json.loads(state)
        expect(isinstance(number, int), f"expected a whole number, not {number!r}")
        self._model().set_rng_state(number)

    def version(self) -> str:
        """Return the version of torch_xla."""
        return version_of("torch_xla")

    @staticmethod
    def _model() -> Any:
        return sys.modules[_XLA]
