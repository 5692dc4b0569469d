"""Functions that are replaced can still be pickled: a process pool sends them by name."""

from __future__ import annotations

import functools
import pickle
import random
import sys
from typing import Any

import pytest
import torch

from samebits.determinism.activation import Activation
from samebits.determinism.control import Control
from samebits.hooks.patching import Patches
from samebits.hooks.static_types import StaticTypePatches


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
