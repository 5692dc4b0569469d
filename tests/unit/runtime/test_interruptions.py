"""Which exceptions come from outside of the code that they appear in."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import threading

import pytest

from samebits._runtime.builtin_proxies import leave_no_line
from samebits._runtime.frames import ignored, is_from_outside, pass_on


class OverTimeError(Exception):
    """What a script raises when its time is over."""


def raising(signum, frame):
    """A handler."""
    raise OverTimeError


def deeper(signum, frame):
    """A handler that calls what raises."""
    raising(None, None)


def of_any_arguments(*given):
    """A handler."""
    raise TimeoutError(given[0])


def raising_method(self, signum, frame):
    """A handler that is called by its object."""
    raise OverTimeError


class Watch:
    """Handlers that are methods."""

    __call__ = raising_method

    def end(self, signum, frame):
        """A handler."""
        raise OverTimeError


def with_more(more, signum, frame):
    """A handler that is bound to an argument."""
    raise OverTimeError


HANDLERS = {
    "function": raising,
    "deeper": deeper,
    "any arguments": of_any_arguments,
    "method": Watch().end,
    "object": Watch(),
    "partial": functools.partial(with_more, 1),
    "lambda": lambda signum, _: 1 // 0,
}


@pytest.fixture
def handled():
    """Calls a handler of SIGUSR1 where the process is."""
    before = signal.getsignal(signal.SIGUSR1)

    def interrupt(handler) -> None:
        signal.signal(signal.SIGUSR1, handler)
        signal.raise_signal(signal.SIGUSR1)

    yield interrupt
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("name", HANDLERS)
def test_what_a_signal_handler_raises_passes(handled, name):
    with pytest.raises((OverTimeError, TimeoutError, ZeroDivisionError)), ignored():
        handled(HANDLERS[name])


@pytest.mark.parametrize("name", HANDLERS)
def test_a_signal_in_a_proxy_that_takes_its_line_out_passes(handled, name):
    """The frame that the handler is given is then not in the traceback."""
    source = """
def call(function, argument):
    try:
        return function(argument)
    except BaseException as error:
        leave_no_line(error)
        raise
"""
    proxy = {"__name__": "samebits.recording.example", "leave_no_line": leave_no_line}
    exec(source, proxy)  # noqa: S102 - as if it were one

    def raise_signal(number):
        proxy["call"](signal.raise_signal, number)

    signal.signal(signal.SIGUSR1, HANDLERS[name])
    with pytest.raises((OverTimeError, TimeoutError, ZeroDivisionError)), ignored():
        raise_signal(signal.SIGUSR1)


def test_a_handler_that_is_not_one_any_more(handled):
    def once(signum, frame):
        signal.signal(signum, signal.SIG_DFL)
        raise OverTimeError

    with pytest.raises(OverTimeError), ignored():
        handled(once)


def test_what_another_thread_throws_in_passes():
    source = "def work():\n    while True: pass\n"  # a loop of a library
    library = {"__name__": "samebits.recording.example"}
    exec(source, library)  # noqa: S102 - as if it were one
    main = threading.get_ident()
    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    timer = threading.Timer(0.2, lambda: throw(ctypes.c_ulong(main), ctypes.py_object(OverTimeError)))
    timer.start()
    caught = None
    try:
        library["work"]()
    except OverTimeError as error:
        # this test is part of the traceback, which an `except` in samebits would not be
        caught = error.with_traceback(error.__traceback__.tb_next)
    timer.join()
    assert caught is not None
    assert is_from_outside(caught)


def fails():
    """Code of a user that is called, as a property is."""
    raise OverTimeError


@pytest.mark.parametrize("call", [fails, lambda: {}[0], lambda: int("a"), lambda: os.stat("/no/file")])
def test_errors_of_the_code_itself_are_ignored(call):
    with ignored():
        call()


def test_errors_that_compiled_code_of_others_raises_are_ignored(monkeypatch):
    """It has no frames either."""
    kind = type("CompiledError", (Exception,), {"__module__": "fitted._core"})
    library = {"__name__": "samebits.recording.example", "iterate": iter(_raises(kind)).__next__}
    exec("def work(): iterate()", library)  # noqa: S102 - as if it were one
    caught = None
    try:
        library["work"]()
    except kind as error:
        caught = error
    assert caught is not None
    caught.__traceback__ = caught.__traceback__.tb_next
    caught.__traceback__.tb_next = None
    assert not is_from_outside(caught)


def _raises(kind):
    raise kind
    yield


def test_a_function_of_samebits_that_is_given_its_callers_frame():
    library = {"__name__": "samebits.recording.example"}
    exec("def find(frame, depth=1): raise KeyError", library)  # noqa: S102 - as if it were one
    with ignored():
        library["find"](sys._getframe())


def test_interrupts_pass():
    with pytest.raises(KeyboardInterrupt), ignored():
        raise KeyboardInterrupt


def test_pass_on_leaves_errors_alone():
    try:
        fails()
    except OverTimeError as error:
        pass_on(error)
