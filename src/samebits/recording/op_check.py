"""Ops of a block of code executed again, each on the same inputs, without a record."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from samebits.recording._recorder import Recorder, TensorReader
from samebits.recording.probes.backward import BackwardProbe
from samebits.recording.probes.modules import ModulePaths, ModuleRegistry
from samebits.recording.probes.op_replay import ReplayProbe
from samebits.recording.probes.optimizers import StateProbe
from samebits.recording.probes.rng import RngProbe
from samebits.recording.probes.state import StateTracker
from samebits.recording.probes.streams import StreamProbe
from samebits.recording.settings import RecordingSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.recording.replay_results import ReplaySummary
    from samebits.records.writer import RecordWriter


@contextmanager
def ops_repeated(times: int) -> Iterator[Callable[[], ReplaySummary]]:
    """Execute each op of the body again and compare the bits; the body gets the results of the first.

    Args:
        times: how often each is executed again.

    Yields:
        A function that gives the results.
    """
    import torch

    from samebits.digest import digest_many, observe, storage_addresses

    recorder = Recorder(cast("RecordWriter", _Discarding()), RecordingSettings(record="", replay=times))
    recorder.set_reader(TensorReader(digest_many, observe, storage_addresses))
    recorder.seen.optimizer = True  # a backward pass of the body closes no step
    registry = ModuleRegistry()
    state = StateTracker(recorder, registry)
    boundaries = StateProbe(recorder, state, RngProbe(recorder), StreamProbe())
    backward = BackwardProbe(recorder, state, boundaries)
    paths = ModulePaths(recorder, registry)
    replay = ReplayProbe(recorder, paths, backward)
    probes = (registry, backward, paths, replay)
    recorder.start()
    installed: list[Any] = []
    try:
        for probe in probes:
            installed.append(probe)
            probe.install(torch)
        yield replay.summary
    finally:
        recorder.stop()
        while installed:
            installed.pop().remove()


class _Discarding:
    """What a recorder needs of a writer, without a file: numbers for values, and nothing kept."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def text(self, value: str) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    site = layout = text

    def add(self, row: tuple[Any, ...]) -> None:
        """Forget the row."""
