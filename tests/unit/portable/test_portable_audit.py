"""The audit: a handler that calls an inexact op of torch fails."""

from __future__ import annotations

import pytest
import torch
from audit import InexactOpError

from samebits.portable import _plans
from samebits.portable._dispatch import PortableMode


@pytest.fixture
def planted(monkeypatch):
    """Gives `aten::mm` a handler that calls what it should not."""

    def plant(handler):
        table = {torch.ops.aten.mm.default: handler}
        monkeypatch.setattr(_plans, "handlers", lambda _: table)
        monkeypatch.setattr(_plans, "low_handlers", lambda _: table)

    return plant


@pytest.mark.parametrize(
    "handler",
    [
        lambda a, b: (a * b).sum(),
        lambda a, b: torch.exp(a) + b,
        lambda a, b: torch.add(a, b, alpha=2),
        torch.nn.functional.linear,
    ],
)
def test_a_handler_that_calls_an_inexact_op_fails(planted, handler):
    """Ops that only hold for integers, ops on no list, conditions, composite ops."""
    planted(handler)

    with PortableMode(), pytest.raises(InexactOpError):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))


def test_exact_ops_and_kernels_pass(planted):
    """What handlers are made of is not stopped."""
    planted(lambda a, b: torch.where(a > b, a * b, (-a + b).float().reshape(2, 2)) + a.long().sum())

    with PortableMode():
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_a_script_is_not_audited(unaudited, planted):
    """The audit belongs to the tests."""
    planted(lambda a, b: (a * b).sum())

    with PortableMode():
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).item() == 4
