"""What stands in a module for a function that is written in C.

A C function in a class is not bound to instances (`clock = time.monotonic` in a class body works), it
pickles by its name, and it leaves no line in a traceback. What stands for one does the same: it is an object
and no function, and answers as the original does. Stands can stand for stands.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[..., Any]


class Stand:
    """Stands for a function. Each has a class of its own, whose `__call__` it is: see `standing`."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(cast("Any", self), function)
        self._function = function

    def __getattr__(self, name: str) -> Any:
        if name == "_function":  # while it is being made
            raise AttributeError(name)
        return getattr(self._function, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance(time.time, types.BuiltinFunctionType)
        return self._function.__class__

    def __repr__(self) -> str:
        return repr(self._function)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._function.__reduce_ex__(protocol)


def standing(function: Any, call: Call) -> Any:
    """What stands for a function.

    Args:
        function: the original.
        call: takes the stand and the arguments. A closure finds what it needs faster than a method, which
            would ask `__getattr__`.
    """
    return type("Stand", (Stand,), {"__call__": call, "__module__": __name__})(function)


def leave_no_line(error: BaseException) -> None:
    """Take the first line, ours, out of an error's traceback before it is raised again by a bare `raise`.

    CPython adds a line where an error leaves a call, and none where it is raised again (Python/ceval.c,
    `exception_unwind`).
    """
    trace = error.__traceback__
    error.__traceback__ = None if trace is None else trace.tb_next
