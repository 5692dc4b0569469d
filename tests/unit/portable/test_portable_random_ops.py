"""torch's random ops in portable mode: one key per op from torch's generator, values by logical index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as torch's own documentation does
from mt19937 import Mt19937

from samebits.errors import SamebitsError
from samebits.portable._dispatch import PortableMode
from samebits.portable.backends.library import load
from samebits.portable.ops.random import next_key

if TYPE_CHECKING:
    from collections.abc import Callable

P = torch.tensor([[0.1, 0.5, 0.0, 0.4], [0.3, 0.3, 0.2, 0.2]])
OPS: dict[str, Callable[[], torch.Tensor]] = {
    "rand": lambda: torch.rand(3, 5),
    "rand out": lambda: torch.rand(3, 5, out=torch.empty(0)),
    "rand double": lambda: torch.rand(7, dtype=torch.float64),
    "rand bfloat16": lambda: torch.rand(100, dtype=torch.bfloat16),
    "rand_like": lambda: torch.rand_like(P),
    "randn": lambda: torch.randn(3, 5),
    "randn half": lambda: torch.randn(9, dtype=torch.float16),
    "randn_like": lambda: torch.randn_like(P),
    "randint": lambda: torch.randint(10, (9,)),
    "randint low": lambda: torch.randint(-3, 10, (9,), dtype=torch.int16),
    "randint out": lambda: torch.randint(-3, 10, (9,), out=torch.empty(0, dtype=torch.int64)),
    "randint_like": lambda: torch.randint_like(P, 5),
    "randint_like low": lambda: torch.randint_like(P, -5, 5),
    "randperm": lambda: torch.randperm(100),
    "randperm int32": lambda: torch.randperm(100, dtype=torch.int32),
    "bernoulli": lambda: torch.bernoulli(P),
    "bernoulli p": lambda: torch.bernoulli(P, 0.3),
    "bernoulli_": lambda: torch.empty(9, dtype=torch.bool).bernoulli_(0.3),
    "bernoulli_ tensor": lambda: torch.empty(2, 4).bernoulli_(P),
    "dropout": lambda: F.dropout(torch.ones(50)),
    "native_dropout": lambda: torch.native_dropout(torch.ones(50), 0.25, True)[0],
    "alpha_dropout": lambda: F.alpha_dropout(torch.ones(50), 0.5, training=True),
    "dropout2d": lambda: F.dropout2d(torch.ones(2, 5, 3, 3), 0.5),
    "feature_alpha_dropout": lambda: F.feature_alpha_dropout(torch.ones(2, 5, 3), 0.5, training=True),
    "uniform_": lambda: torch.empty(3, 3).uniform_(-2, 3),
    "normal_": lambda: torch.empty(3, 3).normal_(1, 3),
    "normal tensors": lambda: torch.normal(P, P),
    "normal mean": lambda: torch.normal(P, 2.0),
    "normal std": lambda: torch.normal(2.0, P),
    "normal size": lambda: torch.normal(2.0, 0.5, (5,)),
    "random_": lambda: torch.empty(9, dtype=torch.int8).random_(),
    "random_ float": lambda: torch.empty(9).random_(),
    "random_ to": lambda: torch.empty(9).random_(7),
    "random_ from": lambda: torch.empty(9, dtype=torch.int64).random_(-(2**63), None),
    "exponential_": lambda: torch.empty(9).exponential_(2),
    "geometric_": lambda: torch.empty(9).geometric_(0.2),
    "log_normal_": lambda: torch.empty(9).log_normal_(),
    "cauchy_": lambda: torch.empty(9).cauchy_(),
    "multinomial": lambda: torch.multinomial(P, 3),
    "multinomial replacement": lambda: torch.multinomial(P, 9, replacement=True),
    "gamma": lambda: torch._standard_gamma(torch.linspace(0.2, 9, 20)),
    "dirichlet": lambda: torch._sample_dirichlet(P + 0.5),
    "poisson": lambda: torch.poisson(torch.linspace(0, 9, 20)),
    "binomial": lambda: torch.binomial(torch.arange(20.0), torch.linspace(0, 1, 20)),
    "rrelu": lambda: F.rrelu(torch.linspace(-1, 1, 9), training=True),
}


def _run(op: Callable[[], torch.Tensor], seed: int = 11) -> torch.Tensor:
    torch.manual_seed(seed)
    with PortableMode():
        return op()


@pytest.mark.parametrize("seed", [0, 3, 2**32 + 7, -1, 2**63 - 1])
def test_keys_are_the_generators_numbers(seed: int) -> None:
    torch.manual_seed(seed)
    own = Mt19937(seed)
    assert [next_key(None) for _ in range(400)] == [own.key() for _ in range(400)]


@pytest.mark.parametrize("name", OPS)
def test_an_op_takes_one_key(name: str) -> None:
    _run(OPS[name])
    after = torch.get_rng_state()
    torch.manual_seed(11)
    next_key(None)
    assert torch.equal(after, torch.get_rng_state())


@pytest.mark.parametrize("name", OPS)
def test_same_values_on_every_instruction_set_and_for_every_thread_count(name: str) -> None:
    native = load()
    if native is None:
        pytest.skip("no kernels here")
    found = []
    for isa in ("scalar", "avx2", "avx512", "neon"):
        if native.select(isa):
            for threads in (1, 2):
                native.set_threads(threads)
                found.append(_run(OPS[name]))
    native.select("")
    native.set_threads(1)
    assert all(torch.equal(found[0], other) for other in found)


@pytest.mark.parametrize("name", OPS)
def test_shape_and_dtype_are_those_of_torch(name: str) -> None:
    ours = _run(OPS[name])
    plain = OPS[name]()
    assert (ours.shape, ours.dtype) == (plain.shape, plain.dtype)


def test_state_replays_and_fork_leaves_it() -> None:
    torch.manual_seed(5)
    with PortableMode():
        torch.rand(3)
        state = torch.get_rng_state()
        first = torch.randn(5)
        torch.set_rng_state(state)
        with torch.random.fork_rng():
            torch.randn(100)
        assert torch.equal(first, torch.randn(5))


def test_own_generator_leaves_the_default_one() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with PortableMode():
        one = torch.randn(5, generator=torch.Generator().manual_seed(3))
        other = torch.randperm(5, generator=torch.Generator().manual_seed(3))
        dropped = torch.empty(5).uniform_(generator=torch.Generator().manual_seed(3))
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(3)
    with PortableMode():
        assert torch.equal(one, torch.randn(5))
        torch.manual_seed(3)
        assert torch.equal(other, torch.randperm(5))
        torch.manual_seed(3)
        assert torch.equal(dropped, torch.rand(5))


def test_nothing_is_drawn_for_nothing() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with PortableMode():
        torch.rand(0)
        torch.randn(3, 0)
        torch.randperm(0)
        torch.empty(0).exponential_()
        F.dropout(torch.ones(0))
        F.dropout(torch.ones(4), 0.5, training=False)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    "fill",
    [
        lambda t: t.uniform_(-1, 1),
        lambda t: t.normal_(),
        lambda t: t.bernoulli_(0.4),
        lambda t: t.random_(9),
        lambda t: t.exponential_(),
    ],
)
def test_values_go_by_logical_index(fill: Callable[[torch.Tensor], torch.Tensor]) -> None:
    plain = _run(lambda: fill(torch.empty(6, 10)))
    assert torch.equal(plain, _run(lambda: fill(torch.empty(10, 6).t())))
    assert torch.equal(plain, _run(lambda: fill(torch.empty(6, 20)[:, ::2])))


def test_half_open_in_every_dtype() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        values = _run(lambda dtype=dtype: torch.rand(10_000, dtype=dtype))
        assert float(values.min()) >= 0
        assert float(values.max()) < 1
        other = _run(lambda dtype=dtype: torch.empty(10_000, dtype=dtype).uniform_(-0.3, 0.7))
        assert bool((other < torch.tensor(0.7).to(dtype)).all())


def test_a_permutation_is_one() -> None:
    assert sorted(_run(lambda: torch.randperm(1000)).tolist()) == list(range(1000))


def test_dropout_keeps_the_expected_share() -> None:
    out = _run(lambda: F.dropout(torch.ones(100_000), 0.25))
    assert set(out.tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert abs(float((out != 0).double().mean()) - 0.75) < 0.01


def test_multinomial_shares() -> None:
    weights = torch.tensor([1.0, 2.0, 0.0, 3.0])
    many = _run(lambda: torch.multinomial(weights, 60_000, replacement=True))
    torch.testing.assert_close(torch.bincount(many) / 10_000, weights, atol=0.05, rtol=0)
    single = _run(lambda: torch.multinomial(weights.expand(60_000, 4), 1))
    torch.testing.assert_close(torch.bincount(single[:, 0]) / 10_000, weights, atol=0.05, rtol=0)
    assert sorted(_run(lambda: torch.multinomial(weights, 3)).tolist()) == [0, 1, 3]


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.5])
def test_gamma_and_poisson_moments(alpha: float) -> None:
    rates = torch.full((50_000,), alpha, dtype=torch.float64)
    for draw in (torch._standard_gamma, torch.poisson):
        values = _run(lambda draw=draw: draw(rates))
        assert abs(float(values.mean()) - alpha) < 5 * (alpha / 50_000) ** 0.5
        assert abs(float(values.var()) - alpha) < 0.05 * max(alpha, 1)


@pytest.mark.parametrize("p", [0.0, 0.07, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_binomial_shares(n: int, p: float) -> None:
    many = 40_000
    values = _run(lambda: torch.binomial(torch.full((many,), float(n)), torch.full((many,), p)))
    wanted = torch.distributions.Binomial(n, torch.tensor(p)).log_prob(torch.arange(n + 1.0)).exp()
    torch.testing.assert_close(
        torch.bincount(values.long(), minlength=n + 1) / many, wanted, atol=0.01, rtol=0
    )


def test_binomial_at_its_limits() -> None:
    values = _run(lambda: torch.binomial(torch.tensor([-3.0, 2.7, 5.0]), torch.tensor([0.5, 1.0, torch.nan])))
    assert values[:2].tolist() == [0, 2]
    assert bool(values[2].isnan())
    assert _run(lambda: torch.binomial(torch.tensor([1e6]), torch.tensor([1 - 1e-6]))).item() > 1e6 - 20
    for n in (1e6, torch.inf):
        with pytest.raises(SamebitsError, match="binomial"):
            _run(lambda n=n: torch.binomial(torch.tensor([n]), torch.tensor([0.5])))


BAD: dict[str, Callable[[], Any]] = {
    "p": lambda: torch.empty(3).bernoulli_(1.5),
    "probabilities": lambda: torch.bernoulli(torch.tensor([2.0])),
    "range": lambda: torch.randint(5, 5, (3,)),
    "bound": lambda: torch.empty(3, dtype=torch.int8).random_(1000),
    "std": lambda: torch.empty(3).normal_(0, -1),
    "rate": lambda: torch.empty(3).exponential_(-1),
    "uniform": lambda: torch.empty(3).uniform_(2, 1),
    "weights": lambda: torch.multinomial(torch.tensor([-1.0, 2.0]), 1),
    "zeros": lambda: torch.multinomial(torch.zeros(3), 1),
    "samples": lambda: torch.multinomial(torch.ones(3), 4),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused_as_by_torch(name: str) -> None:
    with pytest.raises(RuntimeError):
        BAD[name]()
    with PortableMode(), pytest.raises(RuntimeError):
        BAD[name]()


def test_complex_values_are_refused() -> None:
    with PortableMode(), pytest.raises(SamebitsError) as refused:
        torch.empty(3, dtype=torch.complex64).exponential_()
    assert refused.value.slug == "portable-tensor"


INITS: dict[str, Callable[[torch.Tensor], Any]] = {
    "uniform": torch.nn.init.uniform_,
    "normal": torch.nn.init.normal_,
    "trunc_normal": torch.nn.init.trunc_normal_,
    "xavier_uniform": torch.nn.init.xavier_uniform_,
    "xavier_normal": torch.nn.init.xavier_normal_,
    "kaiming_uniform": torch.nn.init.kaiming_uniform_,
    "kaiming_normal": torch.nn.init.kaiming_normal_,
    "sparse": lambda t: torch.nn.init.sparse_(t, 0.3),
    "eye": torch.nn.init.eye_,
    "constant": lambda t: torch.nn.init.constant_(t, 0.3),
}


@pytest.mark.parametrize("name", INITS)
def test_initialisers(name: str) -> None:
    weight = _run(lambda: INITS[name](torch.empty(40, 60)))
    torch.manual_seed(11)
    plain = INITS[name](torch.empty(40, 60))
    assert abs(float(weight.std()) - float(plain.std())) <= 0.1 * float(plain.std())
    assert torch.equal(weight, _run(lambda: INITS[name](torch.empty(40, 60))))


@pytest.mark.parametrize("alpha", [-2 / 3, -1.0, -5.0])
def test_gamma_values_of_no_distribution_end(alpha):
    """No round would ever give one."""
    with PortableMode():
        assert bool(torch._standard_gamma(torch.tensor([alpha, 2.0])).isnan().tolist() == [True, False])
