"""Stand-ins and helpers for the tests of RNG sources."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from samebits.rng.active import PROCESS, Active
from samebits.rng.unseeded_generators import GeneratorControl
from samebits.switches.switch import Control

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextmanager
def controlled(seed: int | None = 3) -> Iterator[Active]:
    """Control of generators made without a seed, as an activation installs it."""
    active = Active(Control(seed=seed), seed)
    control = GeneratorControl(active)
    PROCESS.push(active)
    control.install()
    try:
        yield active
    finally:
        control.remove()
        PROCESS.drop(active)


class CountingSource:
    """A source whose generator counts up from its seed."""

    name = "counting"
    module = ""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.value = 0

    def draw(self) -> int:
        """The next number."""
        self.value += 1
        return self.value

    def available(self) -> bool:
        """Always."""
        return True

    def seed(self, seed: int) -> None:
        """Count from there."""
        self.value = seed

    def get_state(self) -> bytes:
        """The number."""
        return str(self.value).encode()

    def set_state(self, state: bytes) -> None:
        """Count from there."""
        self.value = int(state)

    def version(self) -> str:
        """Made up."""
        return "counting 1"


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> ModuleType:
    """Put a module of that name into `sys.modules`, as if it had been imported."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def two_devices(monkeypatch: pytest.MonkeyPatch, kind: str, *, started: bool) -> tuple[Any, ...]:
    """Make torch believe that it has two devices of that kind, whose generators are the CPU's.

    Torch's own functions for seeding, and for the state of all devices, run as they are.
    """
    devices = getattr(torch, kind)
    generators = (torch.Generator(), torch.Generator())
    monkeypatch.setattr(devices, "default_generators", generators, raising=False)
    start(monkeypatch, kind, started=started)
    for module in (devices, devices.random):
        monkeypatch.setattr(module, "device_count", lambda: 2)
        monkeypatch.setattr(module, "current_device", lambda: 0)
        monkeypatch.setattr(module, "get_rng_state", lambda index: generators[index].get_state())
        monkeypatch.setattr(module, "set_rng_state", lambda state, index: generators[index].set_state(state))
    tracker = devices._lazy_seed_tracker
    for name in ("manual_seed_all_cb", "manual_seed_cb"):
        monkeypatch.setattr(tracker, name, None)
    monkeypatch.setattr(tracker, "call_order", [])
    if kind == "cuda":
        monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    else:
        monkeypatch.setattr(torch.version, "xpu", "1")
    return generators


def start(monkeypatch: pytest.MonkeyPatch, kind: str, *, started: bool = True) -> None:
    """The devices have been used, or not; the seeds that wait are not set by this."""
    monkeypatch.setattr(getattr(torch, kind), "is_initialized", lambda: started)
