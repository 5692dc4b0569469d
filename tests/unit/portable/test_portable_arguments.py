"""Arguments that torch says no to: in portable mode the same kind of error, no values and no crash."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import samebits
from samebits.errors import SamebitsError
from samebits.portable._handling import handled

WRONG = {
    "result dtype": lambda: torch.arange(3).exp_(),
    "bool result": lambda: torch.tensor([True]).sin_(),
    "out dtype": lambda: torch.exp(torch.ones(3), out=torch.zeros(3, dtype=torch.int64)),
    "mixed matrices": lambda: torch.ones(2, 3).half() @ torch.ones(3, 2),
    "mixed layer": lambda: nn.LayerNorm(4)(torch.ones(2, 4).double()),
    "integers": lambda: torch.arange(3).softmax(0),
    "random integers": lambda: torch.randn(3, dtype=torch.int64),
    "dimension": lambda: torch.ones(2, 3).softmax(5),
    "weight shape": lambda: functional.layer_norm(torch.ones(2, 4), (4,), torch.ones(3)),
    "class weights": lambda: functional.nll_loss(torch.ones(3, 4), torch.arange(3), torch.ones(3)),
    "target dtype": lambda: functional.nll_loss(torch.ones(3, 4), torch.ones(3)),
    "target shape": lambda: functional.cross_entropy(
        torch.ones(2, 4, 3, 3), torch.ones(2, 3, 2, dtype=torch.int64)
    ),
    "triangle": lambda: torch.linalg.solve_triangular(torch.ones(2, 3), torch.ones(2, 2), upper=True),
    "cholesky": lambda: torch.cholesky_solve(torch.ones(2, 2), torch.eye(3)),
    "divisor": lambda: functional.avg_pool2d(torch.ones(1, 1, 8, 8), 2, divisor_override=0),
    "rows": lambda: torch.ones(4, 3).index_add(0, torch.tensor([1]), torch.ones(1, 2)),
    "row dtype": lambda: torch.ones(4, 3).scatter_add(
        0, torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 3).double()
    ),
    "index dtype": lambda: torch.ones(4).index_put((torch.tensor([0.0, 1.0]),), torch.ones(2)),
    "mask": lambda: torch.ones(4).index_put((torch.tensor([True, False]),), torch.ones(1)),
    "index range": lambda: torch.ones(4).scatter_add(0, torch.tensor([9]), torch.ones(1)),
    "many indices": lambda: torch.ones(4).index_put((torch.tensor([0]),) * 2, torch.ones(1)),
    "kind": lambda: torch.ones(4).scatter(0, torch.tensor([0]), torch.ones(1), reduce="any"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_is_that_of_torch(name):
    with pytest.raises(Exception) as plain:
        WRONG[name]()

    with samebits.portable(), pytest.raises(plain.type) as portable:
        WRONG[name]()

    assert str(portable.value) == str(plain.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda index: torch.ones(4).index_add(0, index, torch.ones(2)),
        lambda index: torch.ones(4).scatter_add(0, index, torch.ones(2)),
        lambda index: torch.ones(4).scatter_reduce(0, index, torch.ones(2), "prod"),
        lambda index: torch.bincount(index, weights=torch.ones(2)),
        lambda index: functional.embedding_bag(
            torch.arange(3), torch.ones(4, 2), torch.tensor([0, 3]) - index
        ),
    ],
)
def test_contents_are_looked_at_in_every_call(call):
    """Not only in the first one with these shapes."""
    with samebits.portable():
        call(torch.tensor([0, 1]))
        with pytest.raises((RuntimeError, IndexError)):
            call(torch.tensor([0, -1]))


def test_looking_leaves_tensors_and_generators_alone():
    generator = torch.Generator().manual_seed(3)
    x = torch.ones(3, dtype=torch.float16)
    states = torch.get_rng_state(), generator.get_state()

    with samebits.portable():
        torch.arange(3).float().copysign(x).add_(x, alpha=2)
        torch.ones(2, 2).addmm_(torch.ones(2, 2), torch.ones(2, 2))
        with pytest.raises(IndexError):
            x.index_add_(0, torch.tensor([0, 7]), torch.ones(2, dtype=torch.float16))

    assert torch.equal(x, torch.ones_like(x))
    assert all(map(torch.equal, states, (torch.get_rng_state(), generator.get_state())))


def test_what_torch_takes_and_a_handler_does_not_is_refused():
    def handler(x):
        raise KeyError(x.dtype)

    with pytest.raises(
        SamebitsError, match=r"aten.exp.default at .*test_portable_arguments.py:\d+ got"
    ) as found:
        handled(torch.ops.aten.exp.default, handler, handler, integers=False)((torch.ones(3),), {}, None)

    assert found.value.slug == "portable-op"
