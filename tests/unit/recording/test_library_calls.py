"""Which function of a library the user's line called, and by which parameter it takes a seed."""

from __future__ import annotations

import sys

import pytest

from samebits._runtime.frames import FrameRanks
from samebits.recording.sites import LibraryCall, library_call

LIBRARY = """
import functools

def draw():
    return ask()

def reset(*, seed=None, options=None):
    return draw()

def shuffled(rows, random_state=None):
    return reset()

def checked(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

split = checked(shuffled)

def rvs(*args, **kwds):
    state = kwds.pop("random_state", None)
    return draw()

def fit(model):
    return shuffled(model)

class Means:
    def __init__(self, k=3, random_state=None):
        self.k = k
    def fit(self, points):
        return draw()
    def __call__(self):
        return draw()

class Flip:
    def __init__(self, p=0.5):
        self.found = draw()

class Wrapper:
    def __init__(self, inner):
        self.inner = inner
    def reset(self, **kwargs):
        return self.inner(**kwargs)
    def __getattr__(self, name):
        return getattr(self.inner, name)

exec(compile("def compiled(n, seed=None): return shuffled(n)", "<compiled>", "exec"))
"""
CALLS = {
    "reset()": ("reset", "seed"),
    "split([1])": ("shuffled", "random_state"),  # behind a decorator
    "rvs(3)": ("rvs", "random_state"),  # looked for among any keywords
    "fit(1)": ("fit", ""),  # what it calls is not the user's to seed
    "Means().fit(1)": ("Means", "random_state"),
    "Means()()": ("Means", "random_state"),
    "Flip().found": ("Flip", ""),
    "compiled(1)": ("shuffled", "random_state"),  # text that a decorator compiled
}


@pytest.fixture
def library(tmp_path):
    """The names of an installed library whose draws tell what was called."""
    ranks, found = FrameRanks(), []

    def ask():
        found.append(library_call(ranks, sys._getframe(1)))
        return found[-1]

    path = tmp_path / "site-packages" / "lib" / "__init__.py"
    names = {"__name__": "lib.inner", "ask": ask}
    exec(compile(LIBRARY, str(path), "exec"), names)  # noqa: S102
    names["found"] = found
    return names


@pytest.mark.parametrize("call", CALLS)
def test_what_the_line_calls_is_named_with_the_parameter_for_a_seed(library, call):
    """By its signature, or that of the class of the object that is asked."""
    eval(compile(call, "/home/me/train.py", "eval"), library)  # noqa: S307
    (found,) = library["found"]
    assert (found.function, found.parameter) == (f"lib.inner.{CALLS[call][0]}", CALLS[call][1])


def test_what_the_user_draws_has_no_library(library):
    """Its own line is the place to mend."""
    exec(compile("ask()", "/home/me/train.py", "exec"), library)  # noqa: S102
    assert library["found"] == [None]


def test_as_text_and_back():
    """It is kept in a record; any other text is none."""
    call = LibraryCall("gymnasium.core.Env.reset", "seed")
    assert LibraryCall.from_text(call.to_text()) == call
    assert LibraryCall.from_text(LibraryCall("a.b").to_text()) == LibraryCall("a.b")
    assert LibraryCall.from_text("encoder.layers.0") is None
    assert LibraryCall.from_text("") is None
    assert (call.name, call.package) == ("reset", "gymnasium")
