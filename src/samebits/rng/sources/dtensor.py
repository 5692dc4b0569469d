"""The generator states that DTensor keeps for itself."""

from __future__ import annotations

import json
from typing import Any

from samebits._torch.core import drop_dtensor_tracker, dtensor_states
from samebits.rng.seeds import derive, fit
from samebits.rng.sources.source import expect, version_of
from samebits.rng.sources.torch_devices import TorchSource, bytes_to_tensor, tensor_to_bytes

_DEFAULT = "parallel-rng"  # the state that DTensor's own `manual_seed` sets


class DTensorTracker(TorchSource):
    """DTensor's RNG tracker, where it has states of its own.

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
            own = fit(seed, "torch") if name == _DEFAULT else derive(seed, self.name, name)
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

    def version(self) -> str:
        """Return torch's version."""
        return version_of("torch")
