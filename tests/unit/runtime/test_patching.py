"""Attributes are replaced and put back, and what other code has put there since is left alone.

Functions that are replaced can still be pickled: a process pool sends them by name.
"""

from __future__ import annotations

import functools
import pickle
import random
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import torch

import samebits
from samebits._runtime.patching import Patches, StaticTypePatches
from samebits.determinism.activation import Activation
from samebits.errors import SamebitsWarning
from samebits.switches.switch import Control


def wrapped(original: Any) -> Any:
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    return function


def as_sent(function: Any) -> Any:
    return pickle.loads(pickle.dumps(function))


@pytest.mark.parametrize(
    ("owner", "name"),
    [(torch, "manual_seed"), (torch.random, "manual_seed"), (torch.Tensor, "backward")],
)
def test_what_stands_in_for_a_function_is_pickled_under_the_name_where_it_stands(owner: Any, name: str):
    patches = Patches()
    patches.set(owner, name, wrapped(getattr(owner, name)))
    try:
        stands_in = getattr(owner, name)
        assert as_sent(stands_in) is stands_in
        sent = pickle.dumps(stands_in)
    finally:
        patches.restore()
    assert pickle.loads(sent) == getattr(owner, name)


def test_a_method_of_a_c_type_is_pickled_too():
    patches = StaticTypePatches()
    patches.set(torch.Generator, "manual_seed", wrapped(torch.Generator.manual_seed))
    try:
        assert as_sent(torch.Generator.manual_seed) is torch.Generator.manual_seed
    finally:
        patches.restore()


def test_under_control_everything_that_seeds_can_be_sent_to_another_process():
    control = Activation(Control(seed=3), fresh_process=True, warn=lambda *_: None)
    control.start()
    try:
        numpy_random, os = sys.modules["numpy.random"], sys.modules["os"]
        functions = [
            *(random.Random.seed, os.fork, os.putenv, numpy_random.seed),
            *(torch.Generator.manual_seed, torch.Generator.seed),
            *(torch.manual_seed, torch.random.manual_seed, torch.seed, torch.cuda.manual_seed_all),
            *(torch.use_deterministic_algorithms, torch.set_num_threads),
        ]
        assert [function for function in functions if as_sent(function) is not function] == []
    finally:
        control.stop()


if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def patched_by_user(owner: Any, name: str) -> Iterator[list[Any]]:
    """A wrapper of the user's around what stands there, until the end of the block; yields its calls."""
    calls: list[Any] = []
    original = getattr(owner, name)

    def users(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return original(*args, **kwargs)

    setattr(owner, name, users)
    try:
        yield calls
    finally:
        setattr(owner, name, original)


def left_with(owner: Any, name: str, make_context: Any) -> tuple[Any, Any, list[str]]:
    """Patch an attribute as a user does while a context holds.

    Returns:
        The user's function, what stands there afterwards, and the warnings about that.
    """
    before = getattr(owner, name)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with make_context():
            original = getattr(owner, name)

            def users(*args: Any, **kwargs: Any) -> Any:
                return original(*args, **kwargs)

            setattr(owner, name, users)
    after = getattr(owner, name)
    setattr(owner, name, before)
    texts = [str(warning.message) for warning in told if warning.category is SamebitsWarning]
    return users, after, [text for text in texts if "other code replaced this" in text]


REPLACED = [(torch, "manual_seed"), (torch.random, "manual_seed"), (random, "seed")]


@pytest.mark.parametrize(("owner", "name"), REPLACED)
def test_what_a_user_patches_under_control_stays_and_is_told_once(owner: Any, name: str):
    users, after, told = left_with(owner, name, lambda: samebits.deterministic(seed=3))

    assert after is users
    assert len(told) == 1
    assert told[0].startswith(f"{owner.__name__}.{name}: ")


@pytest.mark.parametrize(("owner", "name"), [(time, "time"), (torch, "save"), (torch.autograd, "backward")])
def test_what_a_user_patches_while_a_block_is_recorded_stays(tmp_path, owner: Any, name: str):
    users, after, told = left_with(owner, name, lambda: samebits.record(tmp_path / "a.sbr"))

    assert after is users
    assert len(told) == 1


def test_what_samebits_does_not_replace_is_the_users_business():
    users, after, told = left_with(torch, "load", lambda: samebits.deterministic(seed=3))

    assert (after is users, told) == (True, [])


def test_what_a_user_patches_and_puts_back_is_put_back_in_order():
    before = torch.manual_seed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="it is too late")
        with samebits.deterministic(seed=3), patched_by_user(torch, "manual_seed") as calls:
            torch.manual_seed(1)
        assert torch.manual_seed is before
        with patched_by_user(torch, "manual_seed"):
            users = torch.manual_seed
            with samebits.deterministic(seed=3):
                torch.manual_seed(1)
            assert torch.manual_seed is users
    assert len(calls) == 1


def test_what_was_taken_under_control_calls_only_the_original_afterwards():
    control = Activation(Control(seed=3, reseed=True), fresh_process=True, warn=lambda *_: None)
    control.start()
    taken, method = torch.manual_seed, torch.Generator.manual_seed
    under_control = taken(5).initial_seed()
    control.stop()

    assert (under_control == 5, taken(5).initial_seed()) == (False, 5)
    assert control.script_seeds == ()
    assert method(torch.Generator(), 6).initial_seed() == 6


def test_an_error_shows_no_more_of_what_was_undone_than_one_line():
    control = Activation(Control(seed=3), fresh_process=True, warn=lambda *_: None)
    control.start()
    taken = random.seed
    control.stop()

    with pytest.raises(TypeError) as caught:
        taken({})
    assert {entry.path.name for entry in caught.traceback} <= {
        "test_patching.py",
        "random.py",
        "<samebits, like importlib._bootstrap>",
    }


class Place:
    """Has a method to replace."""

    def name(self) -> str:
        """What is replaced."""
        return "original"


class Heir(Place):
    """Has the method from its parent."""


def marked(original: Any, mark: str) -> Any:
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        return f"{mark} {original(*args, **kwargs)}"

    return function


def lay(owner: Any, name: str, mark: str) -> Patches:
    patches = Patches()
    patches.set(owner, name, marked(getattr(owner, name), mark))
    return patches


@pytest.mark.parametrize("owner", [Place, Heir])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)])
def test_several_layers_are_taken_away_in_any_order_and_thread(owner: type, order: tuple[int, ...]):
    before = dict(vars(owner))
    layers = [lay(owner, "name", mark) for mark in "abc"]
    assert owner().name() == "c b a original"
    left = {"a", "b", "c"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for index in order:
            thread = threading.Thread(target=layers[index].restore)
            thread.start()
            thread.join()
            left.discard("abc"[index])
            assert set(owner().name().split()) == left | {"original"}
    assert dict(vars(owner)) == before


def test_a_users_layer_between_two_of_ours_stays():
    before = vars(Place)["name"]
    below = lay(Place, "name", "a")
    Place.name = users = marked(Place.name, "user")
    above = lay(Place, "name", "b")
    with pytest.warns(SamebitsWarning, match=r"test_patching\.Place\.name: ") as told:
        below.restore()
    assert Place().name() == "b user original"
    above.restore()

    assert (vars(Place)["name"], len(told)) == (users, 1)
    assert Place().name() == "user original"
    Place.name = before


def test_what_a_user_takes_away_late_is_taken_away_with_the_layer_below():
    before = vars(Place)["name"]
    below, above = lay(Place, "name", "a"), lay(Place, "name", "b")
    with patched_by_user(Place, "name"), pytest.warns(SamebitsWarning, match="other code replaced this"):
        above.restore()
    assert Place().name() == "a original"
    below.restore()

    assert vars(Place)["name"] is before


def test_what_a_user_has_put_back_before_needs_no_word():
    before = vars(Place)["name"]
    patches = lay(Place, "name", "a")
    Place.name = before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patches.restore()

    assert vars(Place)["name"] is before


def test_a_module_that_changes_what_it_is_given_gets_its_own_back():
    class Counting(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            vars(self)[name] = functools.partial(value) if callable(value) else value

    module = Counting("counting")
    module.act = len
    before = vars(module)["act"]
    patches = lay(module, "act", "a")
    assert module.act("xyz") == "a 3"
    patches.restore()

    assert vars(module)["act"].func is before


def test_what_a_user_deleted_stays_deleted():
    patches = lay(Heir, "name", "a")
    del Heir.name
    patches.restore()

    assert "name" not in vars(Heir)


def test_a_static_method_is_inert_once_it_is_undone():
    class Kind:
        @staticmethod
        def act() -> str:
            return "original"

    patches = Patches()
    patches.set(Kind, "act", staticmethod(marked(Kind.act, "a")))
    taken = Kind.act
    assert taken() == "a original"
    patches.restore()

    assert (taken(), Kind.act()) == ("original", "original")
