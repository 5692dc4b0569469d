"""States of the random number generators at each boundary, and the calls that seed them."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.frames import calling_frame, frame_below_compiler
from samebits._runtime.patching import Patches
from samebits.digest import digest_many
from samebits.records.events import EARLIER, TensorInfo
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import RecordedPart
from samebits.rng.sources import RECORDED, TORCH, package_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.substitution import RuleMatch
    from samebits.rng.sources.source import BuiltInSource, StateFunction

_PYTHON = "random"  # the module of the source that always exists


class RngProbe:
    """Records `rng` events: states at boundaries (op `state`), and calls that seed (op `seed`).

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()
        self._torch: Any = None
        self._readers: list[Callable[[], Sequence[tuple[str, Any]]]] = []
        self._layouts: dict[tuple[str, ...], int] = {}

    def install(self, torch: Any) -> None:
        """Watch the generators of the packages that are imported."""
        self._torch = torch
        self._readers = [source.state_reader() for source in RECORDED]
        for package in dict.fromkeys(map(package_of, RECORDED)):
            if not package or package in sys.modules:
                self.watch_seeding(package)

    def watch_seeding(self, package: str) -> None:
        """Watch the functions that seed the generators of a package; an empty name stands for Python."""
        for source in RECORDED:
            if package_of(source) == package:
                module = import_module(source.module or _PYTHON)
                for function in source.recorded_functions:
                    for owner in function.owners_in(module):
                        self._watch(source, owner, function)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def record_states(self) -> None:
        """Record the digest of every generator's state."""
        names, digests = self.states()
        self._recorder.event(EventKind.RNG, "state", None, self._layout(names), digests, ())

    def note_earlier_seeds(self) -> None:
        """Note that generators may have been seeded already; only torch's seed is known."""
        site = self._recorder.sites.find(calling_frame())
        for source in RECORDED:
            state = source.earlier_seed()
            if state:
                self._recorder.remark(EventKind.RNG, "seed", site, f"{state}{EARLIER}")

    def states(self) -> tuple[tuple[str, ...], bytes]:
        """Return the names of the global generators, and a digest of the state of each."""
        names, states = [], []
        for read in self._readers:
            for name, state in read():
                names.append(name)
                states.append(state)
        return tuple(names), digest_many(states)

    def _layout(self, names: tuple[str, ...]) -> int:
        layout = self._layouts.get(names)
        if layout is None:
            infos = tuple(TensorInfo(Role.RNG, name, "state", ()) for name in names)
            layout = self._layouts[names] = self._recorder.writer.layout(infos)
        return layout

    def _torch_states(self) -> list[Any]:
        torch = self._torch
        devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return [torch.get_rng_state(), *devices]

    def _seeded(self, source: BuiltInSource, site: int | None) -> list[RuleMatch]:
        """Keep the states that a seeding left, or replace them by those of another run."""
        substituter = self._recorder.substituter
        if substituter is None or source.library is not TORCH:
            return []
        matches = substituter.matches(EventKind.RNG, "seed", site)
        substituter.seeded |= bool(matches)
        for match in matches:
            states = dict(enumerate(self._torch_states()))
            for position, state in match.exchange(states, show=False).items():
                if position:
                    self._torch.cuda.set_rng_state(state, position - 1)
                else:
                    substituter.seeded_from = states[0]
                    self._torch.set_rng_state(state)
        return matches

    def _watch(self, source: BuiltInSource, owner: Any, function: StateFunction) -> None:
        recorder, original = self._recorder, getattr(owner, function.name)

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
                        # `torch.seed()` chooses the seed itself and returns it.
                        chosen = f" -> {result}" if type(result) is int else ""
                        self._record_seed(source, f"{function.text}({given}){chosen}", frame)
            return result

        self._patches.set(owner, function.name, seed)

    def _record_seed(self, source: BuiltInSource, call: str, frame: FrameType) -> None:
        """Record a call that has seeded generators, given as text."""
        recorder = self._recorder
        site = recorder.sites.find(frame)
        matches = self._seeded(source, site)
        seq = recorder.remark(EventKind.RNG, "seed", site, call)
        if matches:
            matches[0].substituter.recorded(seq, matches)
        for listener in recorder.on_tensors if source.library is TORCH else ():
            listener(seq, EventKind.RNG, "seed", site, list(enumerate(self._torch_states())))
