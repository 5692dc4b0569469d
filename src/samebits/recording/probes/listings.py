"""Listings of folders: the names that the script gets to see, in their order."""

from __future__ import annotations

import fnmatch
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, proxy_of
from samebits._runtime.frames import calling_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from samebits.recording.probes.draw_log import DrawLog

_MODULES = ("glob", "pathlib")  # and their submodules


@dataclass(frozen=True)
class Pattern:
    """Which entries of a folder a function of the standard library hands on.

    Attributes:
        match: tells whether a name is handed on; None where each is.
        only_folders: files are left out.
        hidden: names that begin with a dot are handed on.
    """

    match: Callable[[Any], Any] | None = None
    only_folders: bool = False
    hidden: bool = True

    def takes(self, entry: Any) -> bool:
        """Tell whether an entry, as `os.scandir` gives it, is handed on."""
        name = entry.name
        if not self.hidden and name[:1] in (".", b"."):
            return False
        if self.match is not None and not self.match(name):
            return False
        return not self.only_folders or _is_folder(entry)


def _is_folder(entry: Any) -> bool:
    try:
        return bool(entry.is_dir())
    except OSError:
        return False


def _pattern_of(frame: FrameType | None) -> Pattern:
    """Return what `glob` or `pathlib` looks for in the folder that it lists; all for other code.

    A folder may hold other files in each run, such as records, that no pattern of the script names.
    """
    pattern = Pattern()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _MODULES:
        values = frame.f_locals
        match frame.f_code.co_name:
            case "_iterdir":
                pattern = Pattern(only_folders=bool(values.get("dironly")))
            case "_glob1" | "_rlistdir":
                return _of_glob(values, only_folders=pattern.only_folders)
            case "_select_from":  # before Python 3.13
                selector = values.get("self")
                only_folders = bool(getattr(selector, "dironly", False))
                return Pattern(getattr(selector, "match", None), only_folders)
            case "select_wildcard":
                return Pattern(values.get("match"), bool(values.get("dir_only")))
        frame = frame.f_back
    return pattern


def _of_glob(values: dict[str, Any], *, only_folders: bool) -> Pattern:
    """Return the pattern, given the variables of a function of `glob`; `**` has none."""
    wanted = values.get("pattern")
    hidden = bool(values.get("include_hidden")) or (wanted is not None and wanted[:1] in (".", b"."))
    match = None if wanted is None else functools.partial(_matches, wanted)
    return Pattern(match, only_folders, hidden)


def _matches(wanted: Any, name: Any) -> bool:
    return fnmatch.fnmatch(name, wanted)


def scan(function: Any, op: str, log: DrawLog) -> Any:
    """Return a proxy of `os.scandir` that records the order of the entries once the last one is taken."""

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            entries = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = calling_frame()
        asked = log.asker(frame, op) if log.active else None
        if asked is None:
            return entries
        done = functools.partial(log.at, asked[1], log.site(asked[0]))
        return Entries(entries, _pattern_of(frame), done)

    return proxy_of(function, call)


class Entries:
    """A proxy of the iterator that `os.scandir` gives.

    Args:
        entries: the iterator.
        pattern: tells which entries the script gets to see.
        done: told of their names, in order.
    """

    def __init__(self, entries: Any, pattern: Pattern, done: Callable[[list[Any]], None]) -> None:
        self._entries = entries
        self._pattern = pattern
        self._done: Callable[[list[Any]], None] | None = done
        self._names: list[Any] = []

    def __iter__(self) -> Entries:
        return self

    def __next__(self) -> Any:
        try:
            entry = next(self._entries)
        except BaseException as error:
            leave_no_line(error)
            self.close()
            raise
        if self._pattern.takes(entry):
            self._names.append(entry.name)
        return entry

    def __enter__(self) -> Entries:  # noqa: PYI034 - `Self` is new in Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory and pass on the names that were seen."""
        self._entries.close()
        done, self._done = self._done, None
        if done is not None:
            done(self._names)
