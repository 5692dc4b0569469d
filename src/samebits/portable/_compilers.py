"""What portable mode does about code that a compiler of torch has made or is asked to make."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import LIBRARY, OWN, FrameRanks, calling_frame
from samebits._runtime.imports import PostImport
from samebits._runtime.package import FOLDER
from samebits._runtime.patching import Patches
from samebits._torch.compiler import GRAPHS, compiled_graphs, compiled_programs
from samebits._torch.core import COMPILER_RULES, hide_from_compiler
from samebits.portable._dispatch import is_portable
from samebits.portable._refusals import refuse_compiled, refuse_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType, ModuleType


@contextlib.contextmanager
def programs_refused() -> Iterator[None]:
    """Return a context in which programs that compute past the dispatcher are refused in portable mode.

    They may have been compiled before, by another process too.
    """
    patches, imports = Patches(), PostImport()

    def refuse(methods: Iterable[tuple[Any, str]]) -> None:
        for owner, name in methods:
            patches.set(owner, name, _refused_run(getattr(owner, name), f"{owner.__name__}.{name}"))

    refuse(compiled_programs())
    imports.on_import(GRAPHS, lambda module: refuse(compiled_graphs(module)))
    imports.install()
    try:
        yield
    finally:
        imports.remove()
        patches.restore()


def _refused_run(run: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(run)
    def run_elsewhere(*args: Any, **kwargs: Any) -> Any:
        if is_portable():
            raise refuse_program(name)
        return run(*args, **kwargs)

    return run_elsewhere


def hide_from_loaded_compiler() -> None:
    """Keep torch's compiler, where it is loaded, out of samebits.

    It may run in portable mode, where a library compiles (torch.cond, flex_attention) or something was
    compiled before. Inside a dispatch mode it would trace the mode too, and fail.
    """
    rules = sys.modules.get(COMPILER_RULES)
    if rules is not None:
        _hide_from(rules)


@functools.cache
def _hide_from(rules: ModuleType) -> None:
    hide_from_compiler(rules)


def _first_of_others(frame: FrameType) -> FrameType:
    """Return the first frame outwards that is not of samebits, whose recorder wraps `torch.compile` too."""
    package = FOLDER + os.sep
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    return frame


def refused_compile(compiler: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return `torch.compile`, or what resembles it, for the script to be refused.

    Functions that a library compiles, perhaps at its import, run uncompiled: `compiled_code_runs_eagerly`.

    Args:
        compiler: the function of torch.
        name: how a script calls it.
    """
    ranks = FrameRanks()

    @functools.wraps(compiler)
    def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001 - the name of torch
        if ranks.of(_first_of_others(calling_frame())) not in {OWN, LIBRARY}:
            raise refuse_compiled(name)
        compiled = compiler(*args, **kwargs)
        hide_from_loaded_compiler()  # by now it is
        return compiled

    return compile
