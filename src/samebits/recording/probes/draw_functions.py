"""What stands in a module for a function that draws, and gives the original's answers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import USER, calling_frame
from samebits.hooks.standing import leave_no_line, standing

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from samebits.recording.probes.draw_log import DrawLog


def user_fact(function: Any, op: str, log: DrawLog) -> Any:
    """Stands for a clock, or a function that gives a fact of this process or machine."""
    get_frame, known, counted = calling_frame, log.ranks.known, log.counted

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


def watched(function: Any, note: Callable[[Any, FrameType, tuple[Any, ...], dict[str, Any]], None]) -> Any:
    """Stands for a function and tells of each value that it gives.

    Args:
        function: the original.
        note: told the value, the frame that called, and the arguments.
    """

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        note(value, calling_frame(), args, kwargs)
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

    def note(value: Any, frame: FrameType, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if len(args) <= n_before and log.ranks.of(frame) == USER:
            log.taken_by_user(op, frame, value if isinstance(value, str) else str(tuple(value)))

    return watched(function, note)


def entropy(function: Any, op: str, log: DrawLog) -> Any:
    """Stands for a function that takes something from the operating system for anyone who asks."""
    return watched(function, lambda value, frame, _args, _kwargs: log.taken(op, frame, value))


def given(function: Any, op: str, log: DrawLog) -> Any:
    """Stands for a setter: the value that it is given is what counts."""

    def note(_: Any, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        log.taken(op, frame, [*args, *kwargs.values()][0])

    return watched(function, note)


def global_draw(function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> Any:
    """Stands for a function that draws from a library's global generator, whose state is noted."""
    get_frame, seen, own = calling_frame, log.seen, vars(random)

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        frame = get_frame(1)
        if (id(frame.f_code), frame.f_lasti) not in seen and frame.f_globals is not own:
            log.taken_by_call(op, frame, state)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise

    return standing(function, call)


def reseeding(function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> Any:
    """Stands for `random.seed`, which takes entropy unless it is given a seed."""

    def note(_: Any, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if (args[0] if args else kwargs.get("a")) is None:
            log.taken(op, frame, state(), through=True)

    return watched(function, note)
