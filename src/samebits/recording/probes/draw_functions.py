"""What stands in a module for a function that draws.

A C function in a class is not bound to instances (`clock = time.monotonic` in a class body works), it
pickles by its name, and it leaves no line in a traceback. What stands for one does the same: it is an object
and no function, and gives the original's answers.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, cast

from samebits.hooks.frames import USER

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.recording.probes.draw_log import DrawLog

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
        return type(self._function)

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


def user_fact(function: Any, op: str, log: DrawLog) -> Any:
    """Stands for a clock, or a function that gives a fact of this process or machine."""
    get_frame, known, counted = sys._getframe, log.ranks.known, log.counted

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = get_frame(1)
        identity = id(frame.f_code)
        rest = counted.get((identity, frame.f_lasti))
        if rest is not None:
            rest.add(value)
        elif known.get(identity, USER) == USER and log.ranks.of(frame) == USER:
            log.taken_by_user(op, frame, value)
        return value

    return standing(function, call)


def now(function: Any, op: str, log: DrawLog, n_before: int) -> Any:
    """Stands for a function of `time` that reads the clock unless it is given a time.

    Args:
        function: the original.
        op: its name in events.
        log: told of draws.
        n_before: number of arguments before the time.
    """

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = sys._getframe(1)
        if len(args) <= n_before and log.ranks.of(frame) == USER:
            log.taken_by_user(op, frame, value if isinstance(value, str) else str(tuple(value)))
        return value

    return standing(function, call)


def entropy(function: Any, op: str, log: DrawLog) -> Any:
    """Stands for a function that takes something from the operating system for anyone who asks."""

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        log.taken(op, sys._getframe(1), value)
        return value

    return standing(function, call)


def global_draw(function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> Any:
    """Stands for a function that draws from a library's global generator, whose state is noted."""
    get_frame, seen = sys._getframe, log.seen

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        frame = get_frame(1)
        if (id(frame.f_code), frame.f_lasti) not in seen:
            log.taken_by_call(op, frame, state)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise

    return standing(function, call)


def reseeding(function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> Any:
    """Stands for `random.seed`, which takes entropy unless it is given a seed."""

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        if (args[0] if args else kwargs.get("a")) is None:
            log.taken(op, sys._getframe(1), state(), through=True)
        return value

    return standing(function, call)


def leave_no_line(error: BaseException) -> None:
    """Take the first line, ours, out of an error's traceback before it is raised again by a bare `raise`.

    CPython adds a line where an error leaves a call, and none where it is raised again (Python/ceval.c,
    `exception_unwind`).
    """
    trace = error.__traceback__
    error.__traceback__ = None if trace is None else trace.tb_next
