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


class Stand:
    """Stands for a function.

    Args:
        function: the original.
        op: its name in events.
        log: told of draws.
    """

    def __init__(self, function: Any, op: str, log: DrawLog) -> None:
        functools.update_wrapper(cast("Any", self), function)
        self._function = function
        self._op = op
        self._log = log

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_function"):  # while it is being made
            raise AttributeError(name)
        return getattr(self._function, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance(time.time, types.BuiltinFunctionType)
        return type(self._function)

    def __repr__(self) -> str:
        return repr(self._function)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._function.__reduce_ex__(protocol)


class UserFact(Stand):
    """Stands for a clock, or a function that gives a fact of this process or machine."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the original, and tell the log."""
        try:
            value = self._function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = sys._getframe(1)
        log = self._log
        rank = log.ranks.known.get(id(frame.f_code))
        if rank == USER or (rank is None and log.ranks.of(frame) == USER):
            log.taken_by_user(self._op, frame, value)
        return value


class Now(UserFact):
    """Stands for a function of `time` that reads the clock unless it is given a time."""

    def __init__(self, function: Any, op: str, log: DrawLog, n_before: int = 0) -> None:
        super().__init__(function, op, log)
        self._n_before = n_before

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the original, and tell the log."""
        try:
            value = self._function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = sys._getframe(1)
        if len(args) <= self._n_before and self._log.ranks.of(frame) == USER:
            self._log.taken_by_user(self._op, frame, str(tuple(value)) if self._n_before == 0 else value)
        return value


class Entropy(Stand):
    """Stands for a function that takes something from the operating system for anyone who asks."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the original, and tell the log."""
        try:
            value = self._function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        self._log.taken(self._op, sys._getframe(1), value)
        return value


class GlobalDraw(Stand):
    """Stands for a function that draws from a library's global generator."""

    def __init__(self, function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> None:
        super().__init__(function, op, log)
        self._state = state
        self._seen = log.seen

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the original, and tell the log."""
        frame = sys._getframe(1)
        if (id(frame.f_code), frame.f_lasti) not in self._seen:
            self._log.taken_by_call(self._op, frame, self._state)
        try:
            return self._function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise


class Reseeding(Stand):
    """Stands for `random.seed`, which takes entropy unless it is given a seed."""

    def __init__(self, function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> None:
        super().__init__(function, op, log)
        self._state = state

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the original, and tell the log."""
        try:
            value = self._function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        if (not args and kwargs.get("a") is None) or args[:1] == (None,):
            self._log.taken(self._op, sys._getframe(1), self._state(), through=True)
        return value


def leave_no_line(error: BaseException) -> None:
    """Take the first line, ours, out of an error's traceback before it is raised again by a bare `raise`.

    CPython adds a line where an error leaves a call, and none where it is raised again (Python/ceval.c,
    `exception_unwind`).
    """
    trace = error.__traceback__
    error.__traceback__ = None if trace is None else trace.tb_next
