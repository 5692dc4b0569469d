"""All probes of a recording, put in place and taken away together.

Importing this module imports torch: it is done once the script itself has imported torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from samebits.recording.events import END
from samebits.recording.notes import Note, RecordedPart
from samebits.recording.probes.backward import BackwardProbe
from samebits.recording.probes.batches import BatchProbe
from samebits.recording.probes.boundaries import StateProbe
from samebits.recording.probes.compiled import CompileProbe
from samebits.recording.probes.keep import KeepProbe
from samebits.recording.probes.memory import memory_map
from samebits.recording.probes.module_paths import ModulePaths
from samebits.recording.probes.modules import ModuleRegistry
from samebits.recording.probes.ops import OpProbe
from samebits.recording.probes.optimizers import OptimizerProbe
from samebits.recording.probes.ranks import RankProbe
from samebits.recording.probes.reads import ReadProbe
from samebits.recording.probes.replay import ReplayProbe
from samebits.recording.probes.rng import RngProbe
from samebits.recording.probes.saves import SaveProbe
from samebits.recording.probes.state import StateTracker
from samebits.recording.probes.state_log import StateLogProbe
from samebits.recording.probes.substitution import Substituter
from samebits.recording.probes.threads import ThreadProbe

if TYPE_CHECKING:
    from samebits.recording.recorder import Recorder


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
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        registry = ModuleRegistry()
        self._rng = RngProbe(recorder)
        self._boundaries = StateProbe(recorder, StateTracker(recorder, registry), self._rng)
        backward = BackwardProbe(recorder, self._boundaries.state, self._boundaries)
        optimizers = OptimizerProbe(recorder, self._boundaries.state, backward, self._boundaries)
        self._probes: list[Probe] = [registry, self._rng, BatchProbe(recorder), backward, optimizers]
        self._probes += [ReadProbe(recorder), SaveProbe(recorder), CompileProbe(recorder)]
        settings, state = recorder.settings, self._boundaries.state
        if settings.ranks is not None:
            self._probes.append(RankProbe(recorder, state, registry))
        if settings.state_log or settings.kill_after is not None:
            self._probes.append(StateLogProbe(recorder, state, self._rng))  # its hooks come after the others
        self._substituter: Substituter | None = None
        if recorder.settings.substitution is not None:
            self._substituter = Substituter(recorder, recorder.settings.substitution)
            self._probes.insert(0, self._substituter)
        if recorder.settings.keep_bytes:
            self._probes.append(KeepProbe(recorder))
        if recorder.settings.level == "op":
            memory, paths = memory_map(), ModulePaths(recorder, registry)
            ops = OpProbe(recorder, memory, paths, backward)
            recorder.link_by(memory.event_links)
            self._probes += [paths, ops, ThreadProbe(ops)]
        self._replay: ReplayProbe | None = None
        if recorder.settings.replay:
            paths = ModulePaths(recorder, registry)
            self._replay = ReplayProbe(recorder, paths, backward)
            self._probes += [paths, self._replay, ThreadProbe(self._replay)]

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
        """What the user should know of how it was recorded."""
        return [] if self._substituter is None else self._substituter.notes()

    def replay_facts(self) -> dict[str, Any]:
        """What came of executing ops again, as the record holds it; empty where none were."""
        return {} if self._replay is None else self._replay.summary().to_dict()

    def watch_numpy(self, numpy: Any) -> None:
        """Watch NumPy too, once it is imported."""
        self._rng.watch_numpy(numpy)

    def record_end(self) -> None:
        """Record the state that the run leaves."""
        recorder = self._recorder
        if recorder.active and (recorder.seen.optimizer or recorder.seen.backward):
            with recorder.recording(RecordedPart.LAST_STATE):
                self._boundaries.record(END)
