"""Draws from queues that several threads or processes fill, and from pipes that are waited for together."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.frames import calling_frame
from samebits._runtime.interruptions import pass_on
from samebits.recording._recorder import is_tensor
from samebits.recording.probes.draw_functions import watched

if TYPE_CHECKING:
    from types import FrameType

    from samebits._runtime.imports import PostImport
    from samebits._runtime.patching import Patches
    from samebits.recording.probes.draw_log import DrawLog

_MOST_PARTS, _MOST_BYTES = 64, 1 << 16
_PLAIN = (int, float, complex, bool, str, bytes, type(None))


def watch_queues(patches: Patches, log: DrawLog, imports: PostImport) -> None:
    """Record what is taken from queues, and which of several pipes are ready.

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
