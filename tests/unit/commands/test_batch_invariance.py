"""Whether a sample has the same bits in every batch: causes, and models that change what they are given."""

from __future__ import annotations

import itertools

import pytest
import torch

from samebits.commands.batch_invariance import VarianceCause, first_variance
from samebits.errors import SamebitsError


def batch(n=4):
    """Numbers that no rounding makes equal."""
    return torch.linspace(0.1, 2.3, n * 3).reshape(n, 3)


def test_a_model_that_writes_to_its_batch_does_not_change_the_users():
    given = batch()

    def model(x):
        x -= 1
        return x * 2

    assert first_variance(model, given) is None
    assert torch.equal(given, batch())


def test_buffers_that_a_model_writes_are_put_back_before_each_computation():
    """As spectral norm in training does, each computation moves them."""

    class Moving(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(()))

        def forward(self, x):
            self.scale.mul_(0.5)
            return x * self.scale

    model = Moving()
    assert first_variance(model, batch()) is None
    assert model.scale.item() == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_rounding_that_depends_on_the_size_is_the_kernels(dtype):
    eps = torch.finfo(dtype).eps

    def model(x):
        return x * (1 + eps * (len(x) > 1))

    assert first_variance(model, batch().to(dtype)).cause is VarianceCause.KERNEL


def test_what_depends_on_other_samples_is_told_apart():
    assert first_variance(lambda x: x - x.mean(0), batch()).cause is VarianceCause.OTHER_SAMPLES


def test_what_does_not_repeat_is_no_matter_of_batches():
    counter = itertools.count(1)
    assert first_variance(lambda x: x + next(counter), batch()).cause is VarianceCause.UNREPEATABLE


def test_outputs_that_only_some_batches_have_are_refused():
    with pytest.raises(SamebitsError) as caught:
        first_variance(lambda x: {"x": x, **({"more": x} if len(x) > 1 else {})}, batch())
    assert "more" in str(caught.value)


def test_a_model_with_higher_order_ops_is_looked_at_op_by_op():
    """A dispatch mode that does not ask for them gets an error of torch."""
    attend = torch.ops.higher_order.cond

    def model(x):
        scaled = x * (1 + torch.finfo(torch.float32).eps * (len(x) > 1))
        return attend(torch.tensor(True), lambda y: y.exp(), lambda y: y - 1, (scaled,))

    found = first_variance(model, batch())
    assert found.cause is VarianceCause.KERNEL


def test_a_compiled_model_stays_compiled():
    """It is looked at op by op in a dispatch mode; the compiler leaves alone for ever what runs in one."""
    calls = []

    def backend(graph, _):
        return lambda *given: (calls.append(None), graph.forward(*given))[1]

    compiled = torch.compile(lambda x: x.exp(), backend=backend)
    found = first_variance(lambda x: compiled(x) * (1 + (len(x) > 1)), batch())
    before = len(calls)
    compiled(batch())

    assert found.op
    assert len(calls) == before + 1
