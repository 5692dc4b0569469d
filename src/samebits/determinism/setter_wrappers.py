"""Wrappers of the functions that write settings or seed, and the search for the line that called them."""

from __future__ import annotations

import functools
import os
import sysconfig
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.frames import LIBRARY, USER, FrameRanks, Site, calling_frame, nearest_site, site_of
from samebits._runtime.package import FOLDER
from samebits._runtime.patching import Patches, StaticTypePatches
from samebits._torch.core import setter_locations

if TYPE_CHECKING:
    from types import CodeType, FrameType, ModuleType

    from samebits.determinism._drift import DriftWatch
    from samebits.rng.sources.source import BuiltInSource

# Writes by these modules are control's own, not the script's.
CONTROL = (
    "switches/",
    "rng/sources/",
    "rng/states.py",
    "rng/_source_states.py",
    "rng/generator_objects.py",
    "rng/streams.py",
    "dataloading/_workers.py",
    "determinism/processes.py",
)


class Writer(NamedTuple):
    """The writer of a setting.

    Args:
        site: the nearest line of the user's code.
        by: the line of an installed library that wrote, when it was not the user's own.
        own: samebits itself wrote.
        direct: the user's code wrote, or called a library function that only writes.
        torch: torch wrote, no matter who called it.
    """

    site: Site | None
    by: Site | None = None
    own: bool = False
    direct: bool = False
    torch: bool = False


class Writers:
    """Finds the writer of a setting from stack frames."""

    def __init__(self) -> None:
        self._own = tuple(os.path.join(FOLDER, *path.split("/")) for path in CONTROL)
        self._transparent: dict[CodeType, bool] = {}

    @functools.cached_property
    def _ranks(self) -> FrameRanks:
        return FrameRanks()

    @functools.cached_property
    def _stdlib(self) -> str:
        return os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep

    def of(self, frame: FrameType | None) -> Writer:
        """Return the writer, given the frame that called the setter."""
        library: FrameType | None = None
        count = 0
        torch = self._is_torch(frame)
        while frame is not None:
            if library is None and self._is_own(frame.f_code):
                return Writer(None, own=True, torch=torch)
            rank = self._ranks.of(frame)
            if rank == USER:
                break
            if rank == LIBRARY and not self._is_machinery(frame.f_code):
                library = library or frame
                count += 1
            frame = frame.f_back
        by = None if library is None else site_of(library.f_code, library.f_lineno)
        site = by if frame is None else nearest_site(self._ranks, frame)
        return Writer(site, by, direct=frame is not None and count <= 1, torch=torch)

    def _is_torch(self, frame: FrameType | None) -> bool:
        while frame is not None and self._is_machinery(frame.f_code):
            frame = frame.f_back  # `os` itself
        return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("torch.")

    def _is_own(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self._own)

    def _is_machinery(self, code: CodeType) -> bool:
        """Tell whether it is Python's own library: `contextlib` and `os` write for their caller."""
        known = self._transparent.get(code)
        if known is None:
            path = os.path.realpath(code.co_filename)
            known = path.startswith(self._stdlib) and "site-packages" not in path[len(self._stdlib) :]
            known = known or code.co_filename.startswith("<frozen ")
            self._transparent[code] = known
        return known


class SetterWrappers:
    """The wrappers around functions that write settings or seed.

    Args:
        watch: is told of the calls.
    """

    def __init__(self, watch: DriftWatch) -> None:
        self._watch = watch
        self._patches = Patches()
        self._methods = StaticTypePatches()
        self._torch: Any = None

    def install_variables(self) -> None:
        """Wrap the functions that write environment variables."""
        for name in ("putenv", "unsetenv"):
            self._patches.set(os, name, self._variable_writer(getattr(os, name)))

    def install_source(self, source: BuiltInSource, module: ModuleType) -> None:
        """Wrap the functions of a module that seed the source's generator or put its state back."""
        for function in source.functions:
            wrap = self._seeder if function.seeds else self._restorer
            for owner in function.owners_in(module):
                self._patches.set(owner, function.name, wrap(getattr(owner, function.name)))

    def install_torch(self, torch: Any, setters: list[str]) -> None:
        """Wrap the setters wherever torch holds them, and the methods that seed its generators."""
        for setter, owner, name in setter_locations(setters):
            self._patches.set(owner, name, self._writer(setter, getattr(owner, name)))
        self._torch = torch
        # All ways to seed, such as `torch.manual_seed`, end in these methods of the global generators.
        for name in ("manual_seed", "seed"):
            self._methods.set(torch.Generator, name, self._method(name, self._seeder))
        self._methods.set(torch.Generator, "set_state", self._method("set_state", self._restorer))

    def remove(self) -> None:
        """Put everything back."""
        self._methods.restore()
        self._patches.restore()

    def _writer(self, setter: str, original: Any) -> Any:
        watch = self._watch

        @functools.wraps(original)
        def write(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            watch.wrote(setter, calling_frame())
            return result

        return write

    def _variable_writer(self, original: Any) -> Any:
        watch = self._watch

        @functools.wraps(original)
        def write(name: Any, *value: Any) -> Any:
            watch.wrote_variable(os.fsdecode(name), calling_frame())
            return original(name, *value)

        return write

    def _seeder(self, original: Any) -> Any:
        watch = self._watch

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            before = watch.positions()
            result = original(*args, **kwargs)
            watch.seeded(before, calling_frame())
            return result

        return seed

    def _restorer(self, original: Any) -> Any:
        watch = self._watch

        @functools.wraps(original)
        def restore(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            watch.restored(calling_frame())
            return result

        return restore

    def _method(self, name: str, wrap: Any) -> Any:
        """Return a method of `torch.Generator` that is wrapped for the global generators only."""
        torch, original = self._torch, vars(self._torch.Generator)[name]
        wrapped = wrap(original)

        @functools.wraps(original)
        def method(generator: Any, *args: Any, **kwargs: Any) -> Any:
            devices = torch.cuda.default_generators
            if generator is torch.default_generator or any(generator is device for device in devices):
                return wrapped(generator, *args, **kwargs)
            return original(generator, *args, **kwargs)

        return method
