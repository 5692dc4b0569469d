"""States of the random number generators at each boundary, and who seeds them."""

from __future__ import annotations

import ctypes
import functools
import random
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.frames import calling_frame, frame_below_compiler
from samebits._runtime.patching import Patches
from samebits._torch.core import numpy_state_address
from samebits.digest import digest_many
from samebits.recording.probes.draw_functions import python_state_address
from samebits.records.events import EARLIER, TensorInfo
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.substitution import Turn


class RngProbe:
    """Records `rng` events: states at boundaries (op `state`), and calls that seed (op `seed`).

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()
        self._python = python_state_address()
        self._memory: dict[tuple[int, int], Any] = {}
        self._torch: Any = None
        self._layouts: dict[tuple[str, ...], int] = {}

    def install(self, torch: Any) -> None:
        """Watch the generators of Python, NumPy and torch."""
        self._torch = torch
        for owner, name, text in (
            (torch, "manual_seed", "torch.manual_seed"), (torch, "seed", "torch.seed"),
            (torch.random, "manual_seed", "torch.manual_seed"), (torch.random, "seed", "torch.seed"),
            (random, "seed", "random.seed"),
        ):  # fmt: skip
            self._watch(owner, name, text)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            self.watch_numpy(numpy)

    def watch_numpy(self, numpy: Any) -> None:
        """Watch `numpy.random.seed`."""
        self._watch(numpy.random, "seed", "numpy.random.seed")

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def record_states(self) -> None:
        """Record the digest of every generator's state."""
        names, digests = self.states()
        self._recorder.event(EventKind.RNG, "state", None, self._layout(names), digests, ())

    def note_earlier_seeds(self) -> None:
        """Note that generators may have been seeded already: of torch's the seed is known."""
        site = self._recorder.sites.find(calling_frame())
        numpy = ["numpy.random"] if "numpy" in sys.modules else []
        for call in (f"torch.initial_seed() -> {self._torch.initial_seed()}", "random.getstate()", *numpy):
            self._recorder.remark(EventKind.RNG, "seed", site, f"{call}{EARLIER}")

    def states(self) -> tuple[tuple[str, ...], bytes]:
        """The names of the global generators, and a digest of the state of each."""
        torch = self._torch
        names, states = ["torch", "python"], [torch.get_rng_state(), self._python_state()]
        address = numpy_state_address()
        if address is not None:
            names.append("numpy")
            states.append(self._memory_at(address))
        if torch.cuda.is_initialized():
            on_devices = torch.cuda.get_rng_state_all()
            names += [f"cuda:{index}" for index in range(len(on_devices))]
            states += on_devices
        return tuple(names), digest_many(states)

    def _python_state(self) -> Any:
        if self._python is not None:
            return self._memory_at(self._python)
        text = bytearray(repr(random.getstate()).encode())
        return self._torch.frombuffer(text, dtype=self._torch.uint8)

    def _memory_at(self, place: tuple[int, int]) -> Any:
        """A tensor over the memory of a generator: address and number of bytes."""
        found = self._memory.get(place)
        if found is None:
            memory = (ctypes.c_ubyte * place[1]).from_address(place[0])
            found = self._memory[place] = self._torch.frombuffer(memory, dtype=self._torch.uint8)
        return found

    def _layout(self, names: tuple[str, ...]) -> int:
        found = self._layouts.get(names)
        if found is None:
            infos = tuple(TensorInfo(Role.RNG, name, "state", ()) for name in names)
            found = self._layouts[names] = self._recorder.writer.layout(infos)
        return found

    def _torch_states(self) -> list[Any]:
        torch = self._torch
        devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return [torch.get_rng_state(), *devices]

    def _seeded(self, call: str, site: int | None) -> list[Turn]:
        """Keep the states that a seeding left, or put those of another run in place."""
        substituter = self._recorder.substituter
        if substituter is None or not call.startswith("torch."):
            return []
        turns = substituter.turns(EventKind.RNG, "seed", site)
        substituter.seeded |= bool(turns)
        for turn in turns:
            states = dict(enumerate(self._torch_states()))
            for position, state in turn.exchange(states, show=False).items():
                if position:
                    self._torch.cuda.set_rng_state(state, position - 1)
                else:
                    substituter.seeded_from = states[0]
                    self._torch.set_rng_state(state)
        return turns

    def _watch(self, owner: Any, name: str, text: str) -> None:
        recorder, original = self._recorder, getattr(owner, name)

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
            if recorder.active:
                frame = frame_below_compiler(calling_frame())
                with recorder.recording(RecordedPart.SEED):
                    if not recorder.sites.is_own(frame):
                        given = ", ".join([repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()])
                        # torch.seed() chooses the seed itself and returns it
                        chosen = f" -> {result}" if text == "torch.seed" else ""
                        site = recorder.sites.find(frame)
                        turns = self._seeded(text, site)
                        seq = recorder.remark(EventKind.RNG, "seed", site, f"{text}({given}){chosen}")
                        if turns:
                            turns[0].owner.recorded(seq, turns)
                        for listener in recorder.on_tensors if text.startswith("torch.") else ():
                            listener(seq, EventKind.RNG, "seed", site, list(enumerate(self._torch_states())))
            return result

        self._patches.set(owner, name, seed)
