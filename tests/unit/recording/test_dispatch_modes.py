"""Dispatch modes of ours get higher-order ops, also with a torch that would raise an error there."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.cond import cond_op
from torch.utils._python_dispatch import TorchDispatchMode

from samebits._torch.dispatch_modes import dispatch_mode_class, hand_over_higher_order_ops


def mode_class(base):
    class Log(base):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    return Log


def condition(mode):
    with mode:
        return cond_op(torch.tensor(True), torch.sin, torch.cos, (torch.ones(2),))


@pytest.fixture
def old_mode():
    """A mode class as torch 2.7 has them: without the attribute, torch has no rule for it."""
    return mode_class(TorchDispatchMode)


def test_modes_of_ours_get_higher_order_ops():
    mode = mode_class(dispatch_mode_class())()

    assert torch.equal(condition(mode), torch.ones(2).sin())
    assert "cond" in mode.seen


def test_they_are_handed_over_where_torch_would_not(monkeypatch, old_mode):
    monkeypatch.setattr(torch._ops.HigherOrderOperator, "dispatch", torch._ops.HigherOrderOperator.dispatch)
    with pytest.raises(NotImplementedError):
        condition(old_mode())
    hand_over_higher_order_ops(old_mode)
    mode = old_mode()

    assert torch.equal(condition(mode), torch.ones(2).sin())
    assert "cond" in mode.seen


def test_modes_of_others_get_what_they_got_before(monkeypatch, old_mode):
    monkeypatch.setattr(torch._ops.HigherOrderOperator, "dispatch", torch._ops.HigherOrderOperator.dispatch)
    hand_over_higher_order_ops(old_mode)

    with pytest.raises(NotImplementedError):
        condition(mode_class(TorchDispatchMode)())
    assert torch.equal(
        cond_op(torch.tensor(False), torch.sin, torch.cos, (torch.ones(2),)), torch.ones(2).cos()
    )
