"""Exceptions that come into code from outside: from a signal handler, or thrown in by another thread.

A script that limits its time by `signal.setitimer` and raises in the handler may be interrupted in code of
samebits as in any other. Such an exception belongs to the script; all others there belong to samebits.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

_OWN_PACKAGES = frozenset(("builtins", "numpy", "samebits", "torch"))
_VARARGS = 0x04  # `inspect.CO_VARARGS`, without the import


def pass_on(error: BaseException) -> None:
    """Raise an exception again if it came from outside of the code in which it was caught.

    Args:
        error: the exception that an `except` has caught.
    """
    if is_from_outside(error):
        raise error


class ignored:  # noqa: N801 - used as `contextlib.suppress` is
    """A context whose errors are ignored; exceptions from outside pass."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, Exception) and not is_from_outside(error)


def is_from_outside(error: BaseException) -> bool:
    """Tell whether a signal handler raised an exception, or another thread threw it in.

    `signal.signal` calls a handler with the frame that it interrupted. An exception that another thread
    throws in (`PyThreadState_SetAsyncExc`) has no frame of its own. It is known by its class, which is
    written in Python and not of a library that samebits calls.

    Args:
        error: the exception, with its traceback.
    """
    frames = list(_frames(error.__traceback__))
    if any(_is_handler(frame, interrupted) for interrupted, frame in pairwise(frames)):
        return True
    if _is_of_libraries(type(error).__module__) or not _is_written_in_python(type(error)):
        return False
    return all(_is_of_libraries(str(frame.f_globals.get("__name__"))) for frame in frames)


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _is_handler(frame: FrameType, interrupted: FrameType) -> bool:
    """Tell whether a function was called with a signal and the frame that it interrupted."""
    if str(frame.f_globals.get("__name__")).startswith("samebits."):  # it is given frames for other reasons
        return False
    code = frame.f_code
    n_given = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS)
    values = [frame.f_locals.get(name) for name in code.co_varnames[:n_given]]
    values += [part for value in values if type(value) is tuple for part in value]
    return any(value is interrupted for value in values) and any(isinstance(v, int) for v in values)


def _is_written_in_python(kind: type[BaseException]) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or str(file).endswith(".py")


def _is_of_libraries(module: str) -> bool:
    package = module.partition(".")[0]
    return package in _OWN_PACKAGES or package in sys.stdlib_module_names
