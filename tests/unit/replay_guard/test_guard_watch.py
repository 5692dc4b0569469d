"""The form with hooks, for loops that are not the user's own."""

from __future__ import annotations

import warnings

import pytest
import torch
from flip_support import BitFlip
from guard_support import MODELS, Training

import samebits
from samebits import MismatchKind, ReplayGuard, ReplayMismatchError, SamebitsError


@pytest.mark.parametrize("name", MODELS)
def test_no_false_alarm_and_the_same_bits(name):
    plain = Training(name).train(50)
    training = Training(name)
    guard = ReplayGuard(training.model, every=1)
    handle = guard.watch(training.optimizer)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watched = training.train(50)

    handle.remove()
    assert watched == plain
    assert (guard.steps, guard.replays, guard.mismatches) == (50, 50, ())


@pytest.mark.parametrize("execution", [0, 1])
@pytest.mark.parametrize("backward", [False, True])
def test_a_flip_is_found(execution, backward):
    training = Training("cnn")
    guard = ReplayGuard(training.model, every=1, on_mismatch=lambda mismatch: None)
    handle = guard.watch(training.optimizer)
    training.train(1)
    fault = BitFlip(training.places[1], {execution}, (5, 25), backward=backward)
    training.train(1)
    fault.remove()
    handle.remove()

    (found,) = guard.mismatches
    assert (found.kind, found.odd, found.step) == (MismatchKind.TRANSIENT, execution + 1, 1)
    assert any(each.name.startswith("gradient ") for each in found.tensors)


def test_the_policy_acts_before_the_optimizer():
    training = Training("mlp")
    handle = ReplayGuard(training.model, every=1).watch(training.optimizer)
    training.train(1)
    before = samebits.digest(training.model.state_dict())
    training.begin()
    start = samebits.digest(training.model.state_dict())
    fault = BitFlip(training.places[0], {0}, (5, 25))

    training.step()
    with pytest.raises(ReplayMismatchError):
        training.optimizer.step()
    fault.remove()
    handle.remove()

    assert samebits.digest(training.model.state_dict()) == start != before


def small():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(), torch.nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), 0.1)


def loop(watched, *, accumulate=1, clip=False, evaluate=False, scaler=None, autocast=False):
    """A loop of somebody else's."""
    model, optimizer = small()
    guard = ReplayGuard(model, every=2)
    handle = guard.watch(optimizer) if watched else None
    for step in range(8):
        optimizer.zero_grad()
        for k in range(accumulate):
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = model(torch.randn(5, 4) + k + step).square().mean() / accumulate
            (loss if scaler is None else scaler.scale(loss)).backward()
        if evaluate:
            with torch.no_grad():
                model(torch.randn(2, 4))
        if scaler is not None:
            scaler.unscale_(optimizer)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step() if scaler is None else (scaler.step(optimizer), scaler.update())
    if handle is not None:
        handle.remove()
        assert guard.replays == 4
    return samebits.digest([model.state_dict(), torch.get_rng_state()])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"accumulate": 3},
        {"clip": True},
        {"evaluate": True},
        {"autocast": True},
        {"accumulate": 2, "clip": True, "autocast": True},
    ],
    ids=str,
)
def test_loops(options):
    assert loop(watched=True, **options) == loop(watched=False, **options)


def test_a_loop_with_a_scaler():
    def scaler():
        return torch.amp.GradScaler("cpu", init_scale=2.0**4)

    assert loop(watched=True, scaler=scaler(), clip=True) == loop(watched=False, scaler=scaler(), clip=True)


class WithLoss(torch.nn.Module):
    """Returns its loss, and what that is made of, as the models of transformers do."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 3)

    def forward(self, x):
        """f32[batch, 4] -> two tensors."""
        logits = self.body(x)
        return {"loss": logits.square().mean(), "logits": logits}


@pytest.mark.parametrize("used", ["loss", "logits"])
def test_an_output_that_is_made_of_another(used):
    torch.manual_seed(0)
    model = WithLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    guard = ReplayGuard(model, every=1)
    handle = guard.watch(optimizer)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(5, 4))[used].sum().backward()
        optimizer.step()
    handle.remove()

    assert (guard.replays, guard.mismatches) == (3, ())


def test_gradients_from_elsewhere_end_the_watch():
    model, optimizer = small()
    guard = ReplayGuard(model, every=1)
    guard.watch(optimizer)
    loss = model(torch.randn(5, 4)).square().mean()
    (loss + sum(p.square().sum() for p in model.parameters())).backward()
    with pytest.warns(samebits.SamebitsWarning, match="stopped to watch"):
        optimizer.step()
    for _ in range(3):
        model(torch.randn(5, 4)).sum().backward()
        optimizer.step()

    assert guard.mismatches == ()
    assert guard.replays == 1


def test_two_passes_before_a_step_are_left_alone_and_told():
    model, optimizer = small()
    guard = ReplayGuard(model, every=1)
    guard.watch(optimizer)

    def step():
        loss = model(torch.randn(5, 4)).square().mean()
        loss.backward()
        model(torch.randn(5, 4))  # its graph is not used
        optimizer.step()

    step()
    step()
    with pytest.warns(samebits.SamebitsWarning, match="no forward pass"):
        step()
    assert guard.replays == 0


def test_an_optimizer_that_is_given_a_closure_is_told():
    """The closure makes passes of its own, which cannot be executed again before it."""
    model, optimizer = small()
    guard = ReplayGuard(model, every=1)
    guard.watch(optimizer)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.randn(5, 4)).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    with pytest.warns(samebits.SamebitsWarning, match="given a closure"):
        optimizer.step(closure)
    assert guard.replays == 0


def test_watching_needs_one_module():
    model, optimizer = small()
    with pytest.raises(SamebitsError) as raised:
        ReplayGuard(model, model).watch(optimizer)
    assert raised.value.slug == "replay-guard"


def two_optimizers(watched, *, first):
    """Each has a part of the model; the one that is watched steps first, or second."""
    model, _ = small()
    optimizers = [torch.optim.SGD(part.parameters(), 0.1) for part in (model[0], model[2])]
    guard = ReplayGuard(model, every=2)
    handle = guard.watch(optimizers[0 if first else 1]) if watched else None
    for step in range(6):
        for optimizer in optimizers:
            optimizer.zero_grad()
        model(torch.randn(5, 4) + step).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    if handle is not None:
        handle.remove()
        assert (guard.steps, guard.replays) == (6, 3)
    return samebits.digest([model.state_dict(), torch.get_rng_state()])


@pytest.mark.parametrize("first", [True, False])
def test_two_optimizers_of_one_model(first):
    """Also where the one that is not watched acts first, and changes parameters."""
    assert two_optimizers(watched=True, first=first) == two_optimizers(watched=False, first=first)


def test_an_optimizer_that_was_replaced_is_told():
    """The loop goes on with another one, so nothing would ever be executed again."""
    model, optimizer = small()
    ReplayGuard(model, every=1).watch(optimizer)
    other = torch.optim.Adam(model.parameters())

    def train():
        for _ in range(20):
            model(torch.randn(5, 4)).square().mean().backward()
            other.step()

    with pytest.warns(samebits.SamebitsWarning, match=r"stopped to watch: .*another optimizer \(Adam\)"):
        train()


def test_an_optimizer_of_another_model_is_ignored():
    model, optimizer = small()
    other_model, other = small()
    guard = ReplayGuard(model, every=1)
    handle = guard.watch(optimizer)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            other_model(torch.randn(5, 4)).square().mean().backward()
            other.step()

    handle.remove()
    assert (guard.steps, guard.replays) == (0, 0)


def test_a_second_watch_is_refused_until_the_first_is_removed():
    model, optimizer = small()
    guard = ReplayGuard(model, every=1)
    handle = guard.watch(optimizer)

    with pytest.raises(SamebitsError, match="watches already") as caught:
        guard.watch(optimizer)
    handle.remove()
    guard.watch(optimizer).remove()

    assert caught.value.slug == "replay-guard"


def test_a_step_with_a_closure_is_told():
    """LBFGS makes passes of its own: `watch` stops, and a step function works."""
    model, _ = small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(5, 4)).square().mean()
        loss.backward()
        return loss

    def train():
        for _ in range(3):
            optimizer.step(closure)

    handle = ReplayGuard(model, every=1).watch(optimizer)
    with pytest.warns(samebits.SamebitsWarning, match="is given a closure"):
        train()
    handle.remove()
    guard = ReplayGuard(model, every=1)
    optimizer.step(lambda: guard(closure))
    assert guard.replays >= 1
