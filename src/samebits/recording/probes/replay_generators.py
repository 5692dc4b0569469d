"""The generators that an op may draw from: their states before it, and as it left them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.determinism import rng
from samebits.hooks.interruptions import ignored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.determinism.rng_sources import RngSource
    from samebits.recording.probes.replay_copies import Call


class UnknownGenerator(Exception):  # noqa: N818 - it says why, and never reaches the user as an error
    """An op draws from a generator of which nothing is known."""


class Generators:
    """Finds the generators of a call.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._sources: tuple[RngSource, ...] | None = None

    def of(self, call: Call, tensors: Iterable[Any]) -> States:
        """Generators that an op of torch may draw from: one that is given to it, or those of its devices.

        Raises:
            UnknownGenerator: a device has generators that torch does not hand out.
        """
        args, kwargs = call
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, self._torch.Generator)]
        if given:
            return States(given, ())
        devices = {tensor.device for tensor in tensors}
        if kwargs.get("device") is not None:
            devices.add(self._torch.device(kwargs["device"]))
        return States([self._torch.default_generator, *self._defaults(devices)], ())

    def everywhere(self, call: Call, tensors: Iterable[Any]) -> States:
        """All generators that there are: a foreign op may draw from any.

        Raises:
            UnknownGenerator: as `of`.
        """
        if self._sources is None:
            self._sources = rng.sources()
        own = self.of(call, tensors)
        return States(own.generators, tuple(source for source in self._sources if source.available()))

    def _defaults(self, devices: Iterable[Any]) -> list[Any]:
        found = []
        for device in devices:
            if device.type == "cpu":
                continue
            module = getattr(self._torch, device.type, None)
            generators = getattr(module, "default_generators", None)
            if module is None or not generators:
                raise UnknownGenerator(device.type)
            index = module.current_device() if device.index is None else device.index
            found.append(generators[index])
        return found


class States:
    """States of some generators, saved when this is made and by `save`.

    Args:
        generators: torch's.
        sources: RNG sources beside them.
    """

    def __init__(self, generators: list[Any], sources: tuple[RngSource, ...]) -> None:
        self.generators = generators
        self._sources = sources
        self._before = self._read()
        self._after = self._before

    def note_after(self) -> None:
        """Save what the op left."""
        self._after = self._read()

    def as_before(self) -> None:
        """Put back what the op found."""
        self._write(self._before)

    def as_after(self) -> None:
        """Put back what the op left."""
        self._write(self._after)

    def are_as_after(self) -> bool:
        """Whether the states are now those that the op left."""
        return self._bytes(self._read()) == self._bytes(self._after)

    def _read(self) -> tuple[list[Any], list[tuple[RngSource, bytes]]]:
        saved = []
        for source in self._sources:
            with ignored():  # it can be seeded and not read
                saved.append((source, source.get_state()))
        return [generator.get_state() for generator in self.generators], saved

    def _write(self, states: tuple[list[Any], list[tuple[RngSource, bytes]]]) -> None:
        for source, data in states[1]:
            source.set_state(data)
        for generator, state in zip(self.generators, states[0], strict=True):
            generator.set_state(state)

    @staticmethod
    def _bytes(states: tuple[list[Any], list[tuple[RngSource, bytes]]]) -> list[bytes]:
        return [bytes(state.numpy()) for state in states[0]] + [data for _, data in states[1]]
