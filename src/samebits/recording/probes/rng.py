"""States of the random number generators at each boundary, and who seeds them."""

from __future__ import annotations

import functools
import random
import sys
from typing import TYPE_CHECKING, Any

from samebits.digest import digest_bytes, digest_many, digest_memory
from samebits.hooks.patching import Patches
from samebits.recording.events import TensorInfo
from samebits.recording.probes.python_state import python_state_address
from samebits.torch_private import numpy_state_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.recording.recorder import Recorder


class RngProbe:
    """Records `rng` events: states at boundaries (op `state`), and calls that seed (op `seed`).

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()
        self._python = python_state_reader()
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
        recorder, torch = self._recorder, self._torch
        names = ["torch", "python"]
        digests = digest_many([torch.get_rng_state()]) + self._python()
        address = numpy_state_address()
        if address is not None:
            names.append("numpy")
            digests += digest_memory(*address)
        if torch.cuda.is_initialized():
            states = torch.cuda.get_rng_state_all()
            names += [f"cuda:{index}" for index in range(len(states))]
            digests += digest_many(states)
        recorder.event("rng", "state", None, self._layout(tuple(names)), digests, ())

    def _layout(self, names: tuple[str, ...]) -> int:
        found = self._layouts.get(names)
        if found is None:
            infos = tuple(TensorInfo("rng", name, "state", ()) for name in names)
            found = self._layouts[names] = self._recorder.writer.layout(infos)
        return found

    def _watch(self, owner: Any, name: str, text: str) -> None:
        recorder, original = self._recorder, getattr(owner, name)

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if recorder.active:
                frame = sys._getframe(1)
                with recorder.recording("a seed"):
                    if not recorder.sites.is_own(frame):
                        given = ", ".join([repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()])
                        # torch.seed() chooses the seed itself and returns it
                        chosen = f" -> {result}" if text == "torch.seed" else ""
                        recorder.remark("rng", "seed", frame, f"{text}({given}){chosen}")
            return result

        self._patches.set(owner, name, seed)


def python_state_reader() -> Callable[[], bytes]:
    """A function that gives the digest of the state of Python's global generator."""
    address = python_state_address()
    if address is not None:
        return lambda: digest_memory(*address)
    return lambda: digest_bytes(repr(random.getstate()).encode())
