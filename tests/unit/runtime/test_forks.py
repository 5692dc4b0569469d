"""Objects that follow forks are called there, and are not held."""

from __future__ import annotations

import gc
import os
import weakref

import pytest

from samebits._runtime.processes import at_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")


class Follower:
    """Keeps what it was called for."""

    def __init__(self):
        self.heard = []

    def before(self):
        """Called in the parent."""
        self.heard.append("before")

    def in_child(self):
        """Called in the child."""
        self.heard.append("in child")


def heard_in_child(follower):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, ",".join(follower.heard).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        return stream.read()


def test_methods_are_called_at_a_fork():
    follower = Follower()
    at_fork(before=follower.before, in_child=follower.in_child)
    assert heard_in_child(follower) == "before,in child"
    assert follower.heard == ["before"]


def test_an_object_that_nobody_else_holds_goes():
    follower = Follower()
    at_fork(before=follower.before, in_child=follower.in_child)
    held = weakref.ref(follower)
    del follower
    gc.collect()
    assert held() is None
    assert heard_in_child(Follower()) == ""
