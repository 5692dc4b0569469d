"""Interventions on what runs side by side: processes, the workers of loaders, the threads of an operation.

With `serial-processes`, starting a process returns when the process has ended. A process that waits, for a
queue, a lock or a process that is started later, is passed over: it sleeps and uses no processor. So is a
process that runs longer than `LIMIT_S`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from types import FrameType

    from samebits.interventions.intervention import Replacements

LIMIT_S = 60.0
_POLL_S = 0.02
_BLOCKED_S = 1.0
_STARTS_FOR_THE_SCRIPT = "torch.multiprocessing.spawn"
_WAITING = (b"S", b"D")
_OF_WORKERS = ("prefetch_factor", "multiprocessing_context")


def serialize_processes(replacements: Replacements) -> None:
    """Run the script's processes one at a time."""
    replacements.imports.on_import(
        "multiprocessing.process", lambda module: _follow_starts(replacements, module)
    )


def _follow_starts(replacements: Replacements, module: Any) -> None:
    original = module.BaseProcess.start

    @functools.wraps(original)
    def start(self: Any) -> None:
        original(self)
        frame = calling_frame()
        if replacements.asker.is_direct(frame) or _is_spawned(frame):
            _await(self)

    replacements.patches.set(module.BaseProcess, "start", start)


def _is_spawned(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == _STARTS_FOR_THE_SCRIPT


def _await(process: Any) -> None:
    """Wait until a process ends, or waits itself."""
    end, used, since = monotonic() + LIMIT_S, b"", monotonic()
    while process.exitcode is None and monotonic() < end:
        state, now = _activity(process.pid)
        if state not in _WAITING or now != used:
            used, since = now, monotonic()
        elif monotonic() - since > _BLOCKED_S:
            return
        sleep(_POLL_S)


def _activity(pid: int) -> tuple[bytes, bytes]:
    """Return whether a process runs or sleeps, and the processor time that it has used."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0], b" ".join(fields[11:13])
    except (OSError, IndexError):
        return b"S", b""


def _processes_obstacle() -> str:
    return "" if sys.platform == "linux" else "what a process does is read from /proc, which only Linux has"


def fix_workers(replacements: Replacements) -> None:
    """Give loaders no workers: the main process loads the data."""
    replacements.imports.on_torch(lambda torch: _fix_loaders(replacements, torch.utils.data.DataLoader))


def _fix_loaders(replacements: Replacements, kind: Any) -> None:
    original = kind.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError:
            original(self, *args, **kwargs)  # raises as it does
            return
        if given.arguments.get("num_workers"):
            given.arguments.update(num_workers=0)
            for name in (*_OF_WORKERS, "persistent_workers", "timeout"):
                given.arguments.pop(name, None)
        original(*given.args, **given.kwargs)

    replacements.patches.set(kind, "__init__", begin)


def fix_thread_calls(replacements: Replacements) -> None:
    """Let the script's own `torch.set_num_threads` set one thread."""
    replacements.imports.on_torch(
        lambda torch: replacements.replace(
            torch, "set_num_threads", lambda f, _: f(1), replacements.asker.is_direct
        )
    )


SERIAL_PROCESSES = Intervention(
    "serial-processes",
    "with the script's processes run one at a time",
    patch=serialize_processes,
    obstacle=_processes_obstacle,
    limits="processes of pools and loaders; one that waits for another one, or runs for over a minute, "
    "is passed over",
)
WORKERS = Intervention(
    "workers",
    "with data loaded in the main process",
    patch=fix_workers,
    limits="`worker_init_fn` is not called then, and datasets that shard by worker are not sharded",
)
THREADS = Intervention(
    "threads",
    "with one thread per operation",
    environment=(("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1")),
    switches=(("threads", "1"),),
    limits="a number that the script sets itself (`thread-calls`)",
)
THREAD_CALLS = Intervention(
    "thread-calls",
    "with the script's calls of set_num_threads held at one thread",
    patch=fix_thread_calls,
)
