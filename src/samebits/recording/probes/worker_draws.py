"""Draws in the workers of DataLoaders, which come to the main process with the batch that they went into.

A forked worker has the proxies of the draw log, and no record to write to. There the log is given a
`WorkerSink`. Its draws travel with the next batch (`_BatchWithDraws`), which unpickles as the plain batch, so
that torch's queue, its pinning thread and the script see nothing else. In the main process the draws wait
until that batch is handed over, and are recorded right before it: when they arrive is chance, when they are
used is not.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.frames import calling_frame
from samebits._runtime.patching import Patches
from samebits._runtime.processes import at_fork
from samebits._torch.loaders import (
    LOADER_FETCH,
    base_seed,
    is_worker_loop,
    loader_fetchers,
    n_yielded,
    worker_processes,
)
from samebits.recording._guard import Failures
from samebits.recording.sites import SiteFinder
from samebits.records.events import WORKER, Drawn

if TYPE_CHECKING:
    from types import FrameType

    from samebits._runtime.frames import Site
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.draw_log import DrawLog

_PROBE = "_samebits_worker_draws"  # an attribute of the wrapped `fetch`: the `WorkerDraws`
_MOST_WAITING = 4096  # batches that a script never takes
_BASE_SEED = "torch.utils.data.DataLoader"


WorkerDraw = tuple["Site | None", Drawn]
"""A draw in a worker: the line, and the rest, whose own site means nothing in another process."""


@dataclass(frozen=True, order=True, slots=True)
class BatchKey:
    """The identity of the batch that some draws belong to, ordered as batches are handed over.

    Args:
        epoch: of the worker: how many times it has been told to begin.
        number: of the batch among those of the worker in the epoch.
        worker: its number.
        process: of the worker: two loaders may well have the same seed.
    """

    epoch: int
    number: int
    worker: int
    process: int


class WorkerSink:
    """The destination of a draw log's draws in a worker.

    Args:
        moved: see `SiteFinder`.
    """

    torch_seeds = True
    active = True
    step = 0

    def __init__(self, moved: tuple[str, str] | None = None) -> None:
        self.failures = Failures()
        self._sites: list[Site] = []
        self.sites = SiteFinder(self._intern, moved)
        self._draws: list[WorkerDraw] = []

    def draw(self, drawn: Drawn, step: int) -> None:  # noqa: ARG002
        """Keep a value that was taken from outside torch."""
        site = None if drawn.site is None else self._sites[drawn.site]
        self._draws.append((site, drawn))

    def take(self) -> tuple[WorkerDraw, ...]:
        """Return the draws since the last call."""
        taken = tuple(self._draws)
        self._draws.clear()
        return taken

    def _intern(self, site: Site) -> int:
        self._sites.append(site)
        return len(self._sites) - 1


class WorkerDraws:
    """Records the draws of forked workers of DataLoaders.

    Args:
        recorder: where events go.
        log: told of draws by the proxies of functions, in workers too.
    """

    def __init__(self, recorder: Recorder, log: DrawLog) -> None:
        self._recorder = recorder
        self._log = log
        self._patches = Patches()
        self._installed = False
        self._recording_at_fork = False
        self._sink: WorkerSink | None = None
        self._fetcher: Any = None
        self._epoch = self._number = -1
        self._waiting: dict[BatchKey, tuple[WorkerDraw, ...]] = {}

    def install(self) -> None:
        """Follow the workers that are started from now on."""
        self._installed = True
        self._recorder.before_batch.append(self.hand_over)
        at_fork(before=self._before_fork, in_child=self._in_child)
        for kind in loader_fetchers():
            self._patches.set(kind, LOADER_FETCH, self._fetching(vars(kind)[LOADER_FETCH]))

    def remove(self) -> None:
        """Follow no workers; draws that still arrive are dropped."""
        self._installed = False
        if self.hand_over in self._recorder.before_batch:
            self._recorder.before_batch.remove(self.hand_over)
        self._patches.restore()
        self._waiting.clear()

    def arrived(self, key: BatchKey, draws: tuple[WorkerDraw, ...]) -> None:
        """Hold the draws of a batch that was just unpickled."""
        if self._installed and len(self._waiting) < _MOST_WAITING:
            self._waiting[key] = draws

    def hand_over(self, iterator: Any, frame: FrameType) -> None:
        """Record the draws of the batch that an iterator hands over now.

        Args:
            iterator: of a DataLoader.
            frame: the script's, that asked for the batch.
        """
        seed = base_seed(iterator)
        if seed is None:
            return
        workers = worker_processes(iterator)
        mine = sorted(key for key in list(self._waiting) if key.process in workers)
        if n_yielded(iterator) == 1:
            # From this number torch seeds the generators of workers.
            self._log.at(_BASE_SEED, self._recorder.sites.find(frame), seed)
            newest = mine[-1].epoch if mine else 0
            for key in [key for key in mine if key.epoch < newest]:  # a loop that was left
                mine.remove(key)
                del self._waiting[key]
        if mine:
            self._record(mine[0].worker, self._waiting.pop(mine[0]))

    def _record(self, worker: int, draws: tuple[WorkerDraw, ...]) -> None:
        recorder = self._recorder
        for site, drawn in draws:
            site_id = None if site is None else recorder.writer.site(site)
            recorder.draw(drawn._replace(site=site_id), recorder.step, thread=f"{WORKER}{worker}")

    def _before_fork(self) -> None:
        self._recording_at_fork = self._installed and self._recorder.active

    def _in_child(self) -> None:
        if self._recording_at_fork:
            self._sink = WorkerSink(self._recorder.settings.moved)
            self._log.write_to(self._sink)

    def _fetching(self, original: Any) -> Any:
        @functools.wraps(original)
        def fetch(fetcher: Any, *arguments: Any, **named: Any) -> Any:
            try:
                batch = original(fetcher, *arguments, **named)
            except BaseException as error:
                leave_no_line(error)
                raise
            sink, info = self._sink, _worker_info()
            # A dataset may iterate a loader of its own, whose batches stay where they are.
            if sink is None or info is None or not is_worker_loop(calling_frame()):
                return batch
            self._count(fetcher)
            self._log.flush(sink.step)
            key = BatchKey(self._epoch, self._number, info.id, os.getpid())
            return _BatchWithDraws(batch, key, sink.take())

        setattr(fetch, _PROBE, self)
        return fetch

    def _count(self, fetcher: Any) -> None:
        """Count a batch; a worker makes itself another fetcher at the beginning of each epoch."""
        if fetcher is not self._fetcher:
            self._fetcher, self._number, self._epoch = fetcher, -1, self._epoch + 1
        self._number += 1


class _BatchWithDraws:
    """A batch on its way to the main process; it unpickles as the plain batch."""

    def __init__(self, batch: Any, key: BatchKey, draws: tuple[WorkerDraw, ...]) -> None:
        self._parts = batch, key, draws

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, self._parts


def _unpack(batch: Any, key: BatchKey, draws: tuple[WorkerDraw, ...]) -> Any:
    for kind in loader_fetchers():
        probe = getattr(vars(kind)[LOADER_FETCH], _PROBE, None)
        if probe is not None:
            probe.arrived(key, draws)
            break
    return batch


def _worker_info() -> Any:
    return sys.modules["torch"].utils.data.get_worker_info()
