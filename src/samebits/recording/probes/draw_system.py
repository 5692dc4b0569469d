"""Draws from the system: files, sockets, facts of the machine, and the order of queues and pools."""

from __future__ import annotations

import builtins
import functools
import hashlib
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, proxy_of
from samebits._runtime.frames import HANDING_ON, USER, Asker, calling_frame, pass_on
from samebits.recording._recorder import is_tensor
from samebits.recording.probes.draw_functions import user_fact, user_method, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from samebits._runtime.imports import PostImport
    from samebits._runtime.patching import Patches
    from samebits.recording.probes.draw_log import DrawLog

_MOST_PARTS, _MOST_BYTES = 64, 1 << 16
_PLAIN = (int, float, complex, bool, str, bytes, type(None))


def watch_queues(patches: Patches, log: DrawLog, imports: PostImport) -> None:
    """Record the values that are taken from queues, and which of several pipes are ready.

    Args:
        patches: undo the replacements.
        log: told of draws.
        imports: calls back when a module is imported.
    """

    def watch(module: Any, *names: str) -> None:
        for name in names:
            kind = getattr(module, name)
            op = f"{module.__name__.partition('.')[0]}.{name}.get"
            patches.set(kind, "get", _taking(vars(kind)["get"], op, log))

    imports.on_import("queue", lambda module: watch(module, "Queue"))
    imports.on_import("multiprocessing.queues", lambda module: watch(module, "Queue", "SimpleQueue"))
    imports.on_import("multiprocessing.connection", lambda module: _watch_wait(module, patches, log))


def _taking(original: Any, op: str, log: DrawLog) -> Any:
    @functools.wraps(original)
    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            value = original(self, *args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        if log.active:
            frame: Any = calling_frame()
            frame = frame.f_back if frame.f_code.co_name == "get_nowait" else frame
            if log.asker(frame, op) is not None:  # not for torch, whose loaders hand on whole batches
                log.taken(op, frame, contents(value))
        return value

    return get


def _watch_wait(module: Any, patches: Patches, log: DrawLog) -> None:
    def note(ready: Any, frame: FrameType, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = args[0] if args else named.get("object_list", ())
        if log.active and isinstance(given, list | tuple) and len(ready) < len(given):
            log.taken("multiprocessing.connection.wait", frame, [given.index(each) for each in ready])

    patches.set(module, "wait", watched(module.wait, note))


def contents(value: Any) -> bytes:
    """Digest numbers, text, arrays and tensors, also inside tuples, lists and dictionaries."""
    digest = hashlib.blake2b(digest_size=16)
    waiting, seen = [value], 0
    while waiting and seen < _MOST_PARTS:
        part, seen = waiting.pop(0), seen + 1
        kind = type(part)
        if kind in _PLAIN:
            digest.update(repr(part)[:_MOST_BYTES].encode(errors="surrogatepass"))
        elif kind in (tuple, list):
            waiting += part[:_MOST_PARTS]
        elif kind is dict:
            waiting += [each for item in list(part.items())[:_MOST_PARTS] for each in item]
        else:
            digest.update(_of_array(part))
    return digest.digest()


def _of_array(value: Any) -> bytes:
    kind = type(value)
    try:
        if is_tensor(value):
            from samebits.digest import digest_many  # imports torch, which the script has done by now

            return digest_many([value])
        if kind.__module__ == "numpy" and not value.dtype.hasobject and value.nbytes <= _MOST_BYTES:
            return bytes(value.tobytes())
    except Exception as error:  # noqa: BLE001 - a tensor without memory, say; the kind of value still counts
        pass_on(error)
        return b""
    return f"{kind.__module__}.{kind.__qualname__}".encode()


_PATHS = HANDING_ON | {"posixpath", "ntpath", "genericpath"}
_STATUS = frozenset({"stat", "lstat", "fstat"})
_TIMES = _STATUS | {"getmtime", "getctime", "getatime"}  # others ask whether there is a file, or its size
_OF_PSUTIL = (
    "virtual_memory", "swap_memory", "cpu_percent", "cpu_times", "cpu_stats", "getloadavg", "disk_usage",
    "net_io_counters", "disk_io_counters", "pids",
)  # fmt: skip

_OF_PROCESS = (
    "memory_info", "memory_full_info", "memory_percent", "cpu_percent", "cpu_times", "io_counters", "num_fds",
    "num_ctx_switches", "num_threads",
)  # fmt: skip


def watch_facts(patches: Patches, log: DrawLog, imports: PostImport) -> None:
    """Record facts of files, sockets and the machine that the script asks for.

    Args:
        patches: undo the replacements.
        log: told of draws.
        imports: calls back when a module is imported.
    """
    asker = Asker(log.ranks, _PATHS)
    for name in ("stat", "lstat", "fstat"):
        patches.set(os, name, _status(getattr(os, name), name, log, asker))

    def replace(module: Any, *names: str) -> None:
        for name in names:
            function = getattr(module, name, None)
            if function is not None:
                patches.set(module, name, user_fact(function, f"{module.__name__}.{name}", log))

    imports.on_import("resource", lambda module: replace(module, "getrusage"))
    imports.on_import("shutil", lambda module: replace(module, "disk_usage"))
    imports.on_import("psutil", lambda module: replace(module, *_OF_PSUTIL))
    imports.on_import("psutil", lambda module: _watch_process(module.Process, patches, log))
    imports.on_import("socket", lambda module: _watch_ports(module, patches, log))


def _status(function: Any, name: str, log: DrawLog, asker: Asker) -> Any:
    """Return a proxy of `os.stat`; times and inode are separate draws, since different things decide them."""

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            status = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = calling_frame()
        if log.active:
            asked = asker.find(frame, f"os.{name}")
            asked_by = "" if asked is None else asked[1].rpartition(".")[2]
            if asked is not None and asked_by in _TIMES:
                log.taken_by_user(f"{asked[1]}.time", asked[0], status.st_mtime_ns)
            if asked is not None and asked_by in _STATUS:
                log.taken_by_user(f"{asked[1]}.inode", asked[0], status.st_ino)
        return status

    return proxy_of(function, call)


def _watch_process(kind: Any, patches: Patches, log: DrawLog) -> None:
    """Record facts of a process that the script asks `psutil` for: memory, time, files."""
    for name in _OF_PROCESS:
        method = getattr(kind, name, None)
        if method is not None:
            patches.set(kind, name, user_method(method, f"psutil.Process.{name}", log))


def _watch_ports(module: Any, patches: Patches, log: DrawLog) -> None:
    original = module.socket.getsockname

    @functools.wraps(original)
    def getsockname(self: Any) -> Any:
        value = original(self)
        log.taken("socket.getsockname", calling_frame(), repr(value))
        return value

    patches.set(module.socket, "getsockname", getsockname)


_KERNEL_FILES = ("/proc/", "/sys/")
_ENTROPY = ("/dev/urandom", "/dev/random")
_NUMBER = re.compile(r"/\d+")
_MOST_READ = 4096  # bytes


def watch_files(patches: Patches, log: DrawLog) -> None:
    """Record the contents of kernel files that the script opens.

    Args:
        patches: undo the replacements.
        log: told of draws.
    """
    original, read = io.open, (os.open, os.read, os.close)
    proxy = _opening(original, log, read)
    for owner in (builtins, io):
        if vars(owner)["open"] is original:
            patches.set(owner, "open", proxy)


def _opening(function: Any, log: DrawLog, read: tuple[Callable[..., Any], ...]) -> Any:
    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            file = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        if log.active:
            _note(log, args[0] if args else kwargs.get("file"), calling_frame(), read)
        return file

    return proxy_of(function, call)


def _note(log: DrawLog, file: Any, frame: FrameType, read: tuple[Callable[..., Any], ...]) -> None:
    if not isinstance(file, str | bytes | os.PathLike):
        return
    path = os.fsdecode(file)
    if path.startswith(_ENTROPY):
        log.taken(path, frame, _contents(path, read))
    elif path.startswith(_KERNEL_FILES):
        asked = log.asker(frame, _NUMBER.sub("/N", path))
        if asked is not None and log.ranks.of(asked[0]) == USER:  # a fact: libraries ask for logs
            log.taken_by_user(asked[1], asked[0], _contents(path, read))


def _contents(path: str, read: tuple[Callable[..., Any], ...]) -> bytes:
    open_file, read_file, close_file = read
    try:
        descriptor = open_file(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return b""
    try:
        return bytes(read_file(descriptor, _MOST_READ))
    except OSError:
        return b""
    finally:
        close_file(descriptor)


def watch_futures(module: Any, patches: Patches, log: DrawLog) -> None:
    """Record the order in which futures complete, given `concurrent.futures`."""
    base = sys.modules["concurrent.futures._base"]
    as_completed, wait = base.as_completed, base.wait

    @functools.wraps(as_completed)
    def recorded_as_completed(fs: Any, timeout: float | None = None) -> Iterator[Any]:
        frame = calling_frame()
        asked = log.asker(frame, "concurrent.futures.as_completed") if log.active else None
        site = None if asked is None else log.site(asked[0])
        listed = list(fs)
        positions = {id(future): position for position, future in reversed(list(enumerate(listed)))}
        stream = as_completed(listed, timeout)
        del listed, fs  # results are freed as they are handed over
        try:
            for future in stream:
                if asked is not None:
                    log.at(asked[1], site, positions[id(future)])
                yield future
                del future
        except BaseException as error:
            leave_no_line(error)
            raise

    @functools.wraps(wait)
    def recorded_wait(fs: Any, timeout: float | None = None, return_when: str = "ALL_COMPLETED") -> Any:
        listed = list(fs)
        try:
            result = wait(listed, timeout, return_when)
        except BaseException as error:
            leave_no_line(error)
            raise
        if result.not_done:
            done = [position for position, future in enumerate(listed) if future in result.done]
            log.taken("concurrent.futures.wait", calling_frame(), done)
        return result

    for owner in (base, module):
        patches.set(owner, "as_completed", recorded_as_completed)
        patches.set(owner, "wait", recorded_wait)


def watch_pools(module: Any, patches: Patches, log: DrawLog) -> None:
    """Record the order in which results of `Pool.imap_unordered` arrive, given `multiprocessing.pool`."""
    results = module.IMapUnorderedIterator
    start, arrive = results.__init__, results._set

    @functools.wraps(start)
    def recorded_start(self: Any, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        frame = calling_frame().f_back  # `imap_unordered`'s caller
        asked = log.asker(frame, "") if log.active else None
        if asked is not None:
            self._asked_at = log.site(asked[0])

    @functools.wraps(arrive)
    def recorded_arrive(self: Any, i: int, obj: Any) -> None:
        site = vars(self).get("_asked_at", log)
        if site is not log:
            log.at("multiprocessing.pool.Pool.imap_unordered", site, i)
        arrive(self, i, obj)

    patches.set(results, "__init__", recorded_start)
    patches.set(results, "_set", recorded_arrive)
