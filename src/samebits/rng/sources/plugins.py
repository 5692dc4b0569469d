"""RNG sources that other packages bring, by an entry point."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from samebits._runtime.address_layout import metadata_names
from samebits._runtime.frames import pass_on
from samebits.rng.sources import BUILT_IN

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from samebits.rng.sources.source import RngSource

GROUP = "samebits.rng_sources"
_METHODS = ("available", "seed", "get_state", "set_state", "version")


def plugins() -> tuple[RngSource, ...]:
    """Return the sources of installed packages, in order of their names.

    One that cannot be used is left out, with a warning that says why. The result is cached for each
    `sys.path`, because reading the metadata of all packages takes milliseconds.
    """
    return _plugins(tuple(sys.path))


@functools.lru_cache(maxsize=1)
def _plugins(path: tuple[str, ...]) -> tuple[RngSource, ...]:
    if not any(_mentions_group(folder) for folder in path):
        return ()
    from importlib.metadata import entry_points

    by_name: dict[str, RngSource] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        source = _try_load(entry, {known.name for known in BUILT_IN} | by_name.keys())
        if source is not None:
            by_name[source.name] = source
    return tuple(by_name[name] for name in sorted(by_name))


def _mentions_group(folder: str) -> bool:
    """Tell whether a package in a folder of `sys.path` may have such an entry point.

    Reading those files takes a fifth of the time that `importlib.metadata` needs for the same answer, and
    nearly always the answer is no.
    """
    if os.path.isfile(folder):
        return True  # an archive: leave it to the library
    try:
        names = list(metadata_names(folder))
    except OSError:
        return False
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if GROUP.encode() in file.read():
                        return True
            except OSError:
                continue
    return False


def _try_load(entry: EntryPoint, taken: set[str]) -> RngSource | None:
    """Return the source; None, with a warning, when it cannot be used."""
    try:
        return _load(entry, taken)
    except Exception as error:  # noqa: BLE001 - another package may raise anything
        pass_on(error)
        reason = f"{type(error).__name__}: {error}"
        text = f"the RNG source {entry.name!r} ({entry.value}) is left out: {reason}"
        warnings.warn(f"samebits: {text}", stacklevel=5)
        return None


def _load(entry: EntryPoint, taken: set[str]) -> RngSource:
    """Return the source of an entry point that names a source, or a class or function that makes one.

    Raises:
        Exception: what the package raises; TypeError and ValueError when it cannot be used as a source.
    """
    source: Any = entry.load()
    if isinstance(source, type) or not hasattr(source, "get_state"):
        source = source()
    absent = [name for name in _METHODS if not callable(getattr(source, name, None))]
    absent += [name for name in ("name", "module") if not isinstance(getattr(source, name, None), str)]
    if absent:
        raise TypeError(f"it lacks {', '.join(absent)}")
    if not source.name or source.name in taken:
        raise ValueError(f"the name {source.name!r} is taken" if source.name else "its name is empty")
    return source  # type: ignore[no-any-return] # checked above
