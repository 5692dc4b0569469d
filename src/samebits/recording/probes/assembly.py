"""The set of probes that a recording needs, and a small one that notes compiled code."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol

from samebits._runtime.patching import Patches
from samebits.recording.probes.backward import BackwardProbe
from samebits.recording.probes.batches import BatchProbe
from samebits.recording.probes.captures import CaptureProbe
from samebits.recording.probes.modules import ModulePaths, ModuleRegistry
from samebits.recording.probes.op_calls import memory_map
from samebits.recording.probes.op_replay import ReplayProbe
from samebits.recording.probes.ops import OpProbe
from samebits.recording.probes.optimizers import OptimizerProbe, StateProbe
from samebits.recording.probes.ranks import RankProbe
from samebits.recording.probes.reads import ReadProbe, SaveProbe
from samebits.recording.probes.rng import RngProbe
from samebits.recording.probes.state import StateTracker
from samebits.recording.probes.state_log import StateLogProbe
from samebits.recording.probes.streams import StreamProbe
from samebits.recording.probes.substitution import Substituter
from samebits.recording.probes.tap_events import ModuleOutputs
from samebits.records.events import END
from samebits.records.kinds import Level
from samebits.records.notes import Note, RecordedPart

if TYPE_CHECKING:
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.tap_events import TapProbe


class CompileProbe:
    """Notes calls of `torch.compile` and `nn.Module.compile`.

    Args:
        recorder: told of it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Watch both functions."""
        for owner in (torch, torch.nn.Module):
            original = getattr(owner, "compile", None)
            if original is not None:
                self._patches.set(owner, "compile", self._noted(original))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def _noted(self, original: Any) -> Any:
        recorder = self._recorder

        @functools.wraps(original)
        def compile_(*args: Any, **kwargs: Any) -> Any:
            recorder.seen.compiler = True
            return original(*args, **kwargs)

        return compile_


class Probe(Protocol):
    """**Protocol:** something that watches a part of torch and can be taken away."""

    def install(self, torch: Any) -> None:
        """Begin to watch."""

    def remove(self) -> None:
        """Leave everything as it was."""


class ProbeSet:
    """The probes that a level asks for.

    Args:
        recorder: where events go; its settings say which probes.
        taps: records what modules give, if the settings ask for it.
    """

    def __init__(self, recorder: Recorder, taps: TapProbe) -> None:
        self._recorder = recorder
        registry = ModuleRegistry()
        self._rng = RngProbe(recorder)
        streams = StreamProbe()
        self._boundaries = StateProbe(recorder, StateTracker(recorder, registry), self._rng, streams)
        backward = BackwardProbe(recorder, self._boundaries.state, self._boundaries)
        self._backward = backward
        optimizers = OptimizerProbe(recorder, self._boundaries.state, backward, self._boundaries)
        self._probes: list[Probe] = [registry, streams, self._rng, BatchProbe(recorder), backward, optimizers]
        self._probes += [ReadProbe(recorder), SaveProbe(recorder), CompileProbe(recorder)]
        settings, state = recorder.settings, self._boundaries.state
        if settings.ranks is not None:
            self._probes.append(RankProbe(recorder, state, registry))
        if settings.state_log or settings.kill_after is not None:
            self._probes.append(StateLogProbe(recorder, state, self._rng))  # its hooks come after the others
        self._substituter: Substituter | None = None
        if settings.substitution is not None:
            self._substituter = Substituter(recorder, settings.substitution)
            self._probes.insert(0, self._substituter)
        if settings.keep_bytes:
            self._probes.append(CaptureProbe(recorder))
        if settings.level == Level.OP:
            memory, paths = memory_map(), ModulePaths(recorder, registry)
            ops = OpProbe(recorder, memory, paths, backward)
            recorder.set_links(memory.event_links)
            self._probes += [paths, ops]
        if settings.tap_modules:
            paths = ModulePaths(recorder, registry)
            self._probes.append(ModuleOutputs(registry, paths, settings.tap_modules, taps.record))
        self._replay: ReplayProbe | None = None
        if settings.replay:
            paths = ModulePaths(recorder, registry)
            self._replay = ReplayProbe(recorder, paths, backward)
            self._probes += [paths, self._replay]

    def install(self, torch: Any) -> None:
        """Put all in place."""
        for probe in self._probes:
            probe.install(torch)
        with self._recorder.recording(RecordedPart.GENERATOR_STATES):
            self._rng.record_states()  # before any draw

    def note_earlier_seeds(self) -> None:
        """Note that generators may have been seeded before recording began."""
        with self._recorder.recording(RecordedPart.GENERATOR_STATES):
            self._rng.note_earlier_seeds()

    def remove(self) -> None:
        """Take all away, last first."""
        for probe in reversed(self._probes):
            probe.remove()

    def notes(self) -> list[Note]:
        """Return notes for the user on how the run was recorded."""
        return [] if self._substituter is None else self._substituter.notes()

    def replay_facts(self) -> dict[str, Any]:
        """Return the results of executing ops again, as the record holds them; empty where none were."""
        return {} if self._replay is None else self._replay.summary().to_dict()

    def attention(self) -> frozenset[str]:
        """Return the ops of attention that were seen in autograd graphs."""
        return frozenset(self._backward.attention)

    def watch_seeding(self, package: str) -> None:
        """Watch the functions of a package that seed its generators, once it is imported."""
        self._rng.watch_seeding(package)

    def record_end(self) -> None:
        """Record the state that the run leaves."""
        recorder = self._recorder
        if recorder.counts and (recorder.seen.optimizer or recorder.seen.backward):
            with recorder.recording(RecordedPart.LAST_STATE):
                self._boundaries.record(END)
