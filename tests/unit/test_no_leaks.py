"""The fixture that looks for leaks can find them."""

import functools
import importlib
import os
import random
import sys
import tempfile
import threading

import pytest
import torch

from samebits._torch.core import compiled_graphs


def leak_environment():
    os.environ["SAMEBITS_LEAK"] = "1"
    return lambda: os.environ.pop("SAMEBITS_LEAK")


def leak_import_hook():
    finder = object()
    sys.meta_path.append(finder)
    return lambda: sys.meta_path.remove(finder)


def leak_flag():
    torch.set_default_dtype(torch.float64)
    return lambda: torch.set_default_dtype(torch.float32)


def leak_grad_mode():
    torch.set_grad_enabled(False)
    return lambda: torch.set_grad_enabled(True)


def leak_patch():
    original = torch.Tensor.item
    torch.Tensor.item = lambda tensor: original(tensor)  # noqa: PLW0108 another function is the point
    return lambda: delattr(torch.Tensor, "item")  # it is inherited: there was none in the class


def leak_disguised_patch():
    original = torch.Tensor.backward
    torch.Tensor.backward = functools.wraps(original)(lambda *_: None)
    return lambda: setattr(torch.Tensor, "backward", original)


def leak_standard_library_patch():
    original = random.random
    random.random = lambda: 0.5
    return lambda: setattr(random, "random", original)


def leak_removal():
    original = torch.Tensor.backward
    del torch.Tensor.backward
    return lambda: setattr(torch.Tensor, "backward", original)


def leak_dispatch_mode():
    mode = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode()
    mode.__enter__()
    return lambda: mode.__exit__(None, None, None)


def leak_module_hook():
    return torch.nn.modules.module.register_module_forward_hook(lambda *_: None).remove


def leak_optimizer_hook():
    return importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(print).remove


def leak_thread():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="samebits-noise", daemon=True)
    thread.start()

    def undo():
        stop.set()
        thread.join()

    return undo


LEAKS = [value for name, value in list(globals().items()) if name.startswith("leak_")]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_a_leak_is_found(leak, surroundings):
    """Each kind of leak is named, and is gone once undone."""
    before = surroundings()

    undo = leak()
    found = before.leaks()
    undo()

    assert len(found) >= 1
    assert before.leaks() == []


def test_first_optimizer_is_no_leak(surroundings):
    """The first optimizer makes torch wrap its `step` and load its compiler, which replaces functions."""
    before = surroundings()

    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)

    assert before.leaks() == []


def test_draws_are_undone():
    """The next test's fixture has put the generators back, so two of these see the same numbers."""
    state = torch.get_rng_state()

    torch.rand(3)

    assert not torch.equal(state, torch.get_rng_state())


def test_first_temporary_file_is_no_leak(surroundings):
    """Whichever test makes the first one, alone or after others."""
    before = surroundings()

    tempfile.TemporaryDirectory().cleanup()

    assert before.leaks() == []


@pytest.mark.parametrize("turn", ["first", "second"])
def test_no_compiled_graph_is_left_to_the_next_test(turn):
    assert not compiled_graphs(), turn
    torch.compile(torch.neg, backend="eager")(torch.ones(1))
    assert compiled_graphs() == 1
