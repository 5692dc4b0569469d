"""What a step changes beside gradients is put back before it is executed again, or the step is refused."""

from __future__ import annotations

import functools
import pickle
import random
import warnings

import numpy as np
import pytest
import torch

import samebits
from samebits import ReplayGuard, ReplayMismatchError, SamebitsError

seen_globally: list[float] = []
counted = 0


@pytest.fixture
def model():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2)


X = torch.ones(3, 4)


def guarded(model, step, *args, steps=4, **options):
    """Run a few guarded steps; raises on any mismatch."""
    guard = ReplayGuard(model, every=1, **options)
    for _ in range(steps):
        model.zero_grad()
        guard(step, *args)
    return guard


class Meter:
    """A metric of the user's own."""

    def __init__(self):
        self.count = 0


def test_arguments_that_are_no_tensors_are_put_back(model):
    """A metric counts once a step, a popped dict is whole again, and so is a small array."""
    meter, array = Meter(), np.zeros(3)

    def step(extra, meter, *, array):
        batch = extra["batch"]
        labels = batch.pop("labels")
        meter.count += 1
        array += 1
        ((model(batch["x"]) - labels) ** 2).sum().backward()

    guard = ReplayGuard(model, every=1)
    for _ in range(4):
        model.zero_grad()
        guard(step, {"batch": {"x": X, "labels": torch.ones(3, 2)}}, meter, array=array)
    assert (meter.count, array.tolist(), guard.replays) == (4, [4.0] * 3, 4)
    bound = functools.partial(step, meter=meter, array=array)
    guard(bound, {"batch": {"x": X, "labels": torch.ones(3, 2)}})
    assert (meter.count, array.tolist()) == (5, [5.0] * 3)


def test_generators_of_all_kinds_are_put_back(model):
    held = np.random.default_rng(5)
    own = torch.Generator().manual_seed(3)
    noises = []

    def step(x):
        noise = random.random() + np.random.rand() + held.random() + torch.rand((), generator=own).item()
        noises.append(noise)
        (model(x) * noise + torch.rand(2)).sum().backward()

    torch.manual_seed(1)
    guarded(model, step, X)

    assert len(noises) == 4
    assert len(set(noises)) == 4


def test_generators_go_on_as_without_a_guard(model):
    def step(x):
        (torch.nn.functional.dropout(model(x), 0.5) * random.random()).sum().backward()

    def position():
        return torch.rand(1).item(), random.random(), np.random.rand()

    samebits.seed_all(7)
    for _ in range(4):
        step(X)
    plain = position()
    samebits.seed_all(7)
    guarded(model, step, X)

    assert position() == plain


def test_generators_made_without_a_seed_under_control_are_put_back(model):
    def step(x):
        (model(x) * random.Random().random()).sum().backward()

    with samebits.deterministic(seed=3):
        step(X)
        plain = [random.Random().random() for _ in range(2)]
    with samebits.deterministic(seed=3):
        guarded(model, step, X, steps=1)
        assert [random.Random().random() for _ in range(2)] == plain


def test_plain_variables_are_counted_once(model):
    class Loop:
        def __init__(self):
            self.calls, self.history, self.hidden = 0, {"loss": []}, torch.zeros(2)

        def step(self, x):
            global counted  # noqa: PLW0603
            nonlocal inner
            self.calls += 1
            inner += 1
            counted += 1
            loss = (model(x) + self.hidden).square().sum()
            loss.backward()
            self.hidden = model(x).detach().mean(0)
            self.history["loss"].append(loss.item())
            seen_globally.append(loss.item())
            self.made_late = inner

    inner = 0
    loop = Loop()
    seen_globally.clear()
    before = counted
    guarded(model, loop.step, X)

    assert (loop.calls, inner, counted - before, loop.made_late) == (4, 4, 4, 4)
    assert (len(loop.history["loss"]), len(seen_globally)) == (4, 4)


def test_attributes_of_modules_are_put_back():
    class Counting(torch.nn.Linear):
        calls = 0

        def forward(self, x):
            self.calls += 1
            if not hasattr(self, "noise"):
                self.noise = torch.rand(2)
            return super().forward(x) * self.calls + self.noise

    model = Counting(4, 2)
    guarded(model, lambda x: model(x).sum().backward(), X)

    assert model.calls == 4


def test_a_batch_that_is_changed_in_place_is_put_back(model):
    def step(x):
        x.mul_(2)
        model(x).sum().backward()

    x = torch.ones(3, 4)
    guarded(model, step, x)

    assert x[0, 0] == 16


def test_gradients_of_the_batch_are_accumulated_once(model):
    x = torch.ones(3, 4, requires_grad=True)
    guarded(model, lambda x: model(x).sum().backward(), x, steps=1)
    once = x.grad.clone()

    guarded(model, lambda x: model(x).sum().backward(), x, steps=1)

    assert torch.equal(x.grad, 2 * once)


def test_gradients_are_accumulated_over_guarded_steps(model):
    def step(x):
        model(x).square().sum().backward()

    for k in range(3):
        step(X + k)
    plain = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    guard = ReplayGuard(model, every=2)
    for k in range(3):
        guard(step, X + k)

    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), plain, strict=True))


def test_the_gradient_objects_stay(model):
    def step(x):
        model(x).sum().backward()

    step(X)
    objects = [parameter.grad for parameter in model.parameters()]
    ReplayGuard(model, every=1)(step, X)

    assert all(p.grad is g for p, g in zip(model.parameters(), objects, strict=True))


def test_spectral_norm_and_batch_norm_keep_their_buffers_once():
    def train(guard):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(4, 6)),
            torch.nn.BatchNorm1d(6, momentum=None),
        )
        call = ReplayGuard(net, every=1) if guard else (lambda step, x: step(x))
        for k in range(4):
            call(lambda x: net(x).square().sum().backward(), torch.randn(5, 4) + k)
        return samebits.digest([net.state_dict(), [p.grad for p in net.parameters()]])

    assert train(guard=True) == train(guard=False)


def test_grad_scaler_and_autocast_around_the_call(model):
    def train(guard):
        torch.manual_seed(0)
        net = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
        call = ReplayGuard(net, every=1) if guard else (lambda step, x: step(x))

        def step(x):
            loss = net(x).square().mean()
            scaler.scale(loss).backward()
            return loss

        for k in range(4):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                call(step, X + k)
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
        return samebits.digest([net.state_dict(), scaler.state_dict()])

    assert train(guard=True) == train(guard=False)


def test_activation_checkpointing(model):
    from torch.utils.checkpoint import checkpoint

    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))

    for reentrant in (True, False):
        x = torch.ones(3, 4, requires_grad=True)
        guard = guarded(net, lambda x, r=reentrant: checkpoint(net, x, use_reentrant=r).sum().backward(), x)
        assert guard.replays == 4


def test_zero_grad_inside_the_step(model):
    def step(x):
        model.zero_grad()
        loss = model(x).sum()
        loss.backward()
        return loss

    assert guarded(model, step, X).mismatches == ()


def test_the_result_is_that_of_the_first_execution(model):
    def step(x):
        loss = model(x).sum()
        loss.backward()
        return {"loss": loss, "object": marker}

    marker = object()
    result = ReplayGuard(model, every=1)(step, X)

    assert result["object"] is marker
    assert result["loss"].item() == pytest.approx(model(X).sum().item())


def test_results_in_containers_are_compared(model):
    numbers = iter(range(100))
    guard = ReplayGuard(model, every=1)

    with pytest.raises(ReplayMismatchError, match=r"output\['n'\]\[1\]"):
        guard(lambda x: {"n": (x, float(next(numbers)))}, X)


# Refused.


def test_an_optimizer_step_inside_is_refused(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    with pytest.raises(SamebitsError, match=r"call `optimizer.step\(\)` after|changed parameters") as raised:
        ReplayGuard(model, every=1)(step, X)
    assert raised.value.slug == "replay-step-optimizes"


def test_unscaling_inside_is_refused(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")

    def step(x):
        scaler.scale(model(x).sum()).backward()
        scaler.unscale_(optimizer)

    with pytest.raises(SamebitsError, match="a second time") as raised:
        ReplayGuard(model, every=1)(step, X)
    assert raised.value.slug == "replay-refused"


def test_a_batch_fetched_inside_is_told(model):
    batches = iter([X * k for k in range(10)])

    def step():
        loss = model(next(batches)).sum()
        loss.backward()
        return loss

    with pytest.raises(ReplayMismatchError, match="takes data from an iterator"):
        ReplayGuard(model, every=1)(step)


def test_the_last_batch_fetched_inside_is_refused(model):
    batches = iter([X])

    with pytest.raises(SamebitsError, match="StopIteration") as raised:
        ReplayGuard(model, every=1)(lambda: model(next(batches)).sum().backward())
    assert raised.value.slug == "replay-refused"


def test_a_hook_that_writes_elsewhere_is_refused(model):
    held = [torch.zeros(2, 4)]

    def add(gradient):
        held[0].add_(gradient)

    model.weight.register_hook(add)

    with pytest.raises(SamebitsError, match="aten::add_") as raised:
        ReplayGuard(model, every=1)(lambda x: model(x).sum().backward(), X)
    assert raised.value.slug == "replay-side-effect"


def test_a_large_tensor_that_is_written_to_is_refused(model):
    total = torch.zeros(300_000)

    def step(x):
        total.add_(1)
        model(x).sum().backward()

    with pytest.raises(SamebitsError, match="`total`") as raised:
        ReplayGuard(model, every=1)(step, X)
    assert raised.value.slug == "replay-side-effect"


def test_a_small_tensor_that_is_written_to_is_put_back(model):
    total = torch.zeros(())

    def step(x):
        loss = model(x).sum()
        loss.backward()
        total.add_(1)

    guarded(model, step, X)

    assert total == 4


def test_a_guard_within_a_guarded_step_is_refused(model):
    guard = ReplayGuard(model, every=1)

    def step(x):
        guard(lambda: None)
        model(x).sum().backward()

    with pytest.raises(SamebitsError) as raised:
        guard(step, X)
    assert raised.value.slug == "replay-nested"
    guard(lambda x: model(x).sum().backward(), X)  # it works again


@pytest.mark.parametrize(
    ("modules", "options", "words"),
    [
        ((), {}, "given nothing"),
        (("model",), {}, "given str"),
        ((torch.nn.Linear(1, 1),), {"every": 0}, "`every` is 0"),
        ((torch.nn.Linear(1, 1),), {"every": 2.5}, "`every` is 2.5"),
        ((torch.nn.Linear(1, 1),), {"every": True}, "`every` is True"),
        ((torch.nn.Linear(1, 1),), {"on_mismatch": "stop"}, "`on_mismatch` is 'stop'"),
    ],
)
def test_bad_arguments(modules, options, words):
    with pytest.raises(SamebitsError, match=words) as raised:
        ReplayGuard(*modules, **options)
    assert raised.value.slug == "replay-guard"


# Exceptions.


def test_an_exception_of_the_step_is_its_own(model):
    guard = ReplayGuard(model, every=1)

    def broken(x):
        model(x).sum().backward()
        raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        guard(broken, X)
    assert (guard.steps, guard.replays) == (0, 0)
    guard(lambda x: model(x).sum().backward(), X)
    assert (guard.steps, guard.replays) == (1, 1)


def test_an_exception_in_the_second_execution_only_is_a_mismatch(model):
    calls = iter(range(10))
    found = []

    def step(x):
        if next(calls) == 2:
            raise ValueError("a wrong index")
        model(x).sum().backward()

    ReplayGuard(model, every=1, on_mismatch=found.append)(step, X)

    assert found[0].odd == 2
    assert "raised ValueError: a wrong index" in str(found[0])


def test_no_memory_is_told_and_the_training_goes_on(model):
    calls = iter(range(10))

    def step(x):
        if next(calls):
            raise torch.OutOfMemoryError("no memory")
        model(x).sum().backward()

    guard = ReplayGuard(model, every=1)
    with pytest.warns(samebits.SamebitsWarning, match="no memory to execute"):
        guard(step, X)
    assert guard.mismatches == ()


def test_an_interruption_leaves_the_state_of_the_first_execution(model):
    calls = iter(range(10))

    def step(x):
        model(x).sum().backward()
        if next(calls):
            raise KeyboardInterrupt

    step(X)
    plain = model.weight.grad.clone()
    model.zero_grad()
    calls = iter(range(10))
    with pytest.raises(KeyboardInterrupt):
        ReplayGuard(model, every=1)(step, X)

    assert torch.equal(model.weight.grad, plain)


# Policies and state.


def alternating(model):
    """A step whose second execution differs."""
    calls = iter(range(1000))

    def step(x):
        factor = 1 + (next(calls) % 4 == 2)
        (model(x).sum() * factor).backward()

    return step


def test_raising_leaves_the_gradients_of_the_first_execution(model):
    model(X).sum().backward()
    plain = model.weight.grad.clone()
    model.zero_grad()

    with pytest.raises(ReplayMismatchError) as raised:
        ReplayGuard(model, every=1)(alternating(model), X)

    assert torch.equal(model.weight.grad, plain)
    assert raised.value.slug == "replay-mismatch"
    assert raised.value.mismatch.step == 0


def test_warning_names_the_line_of_the_call(model):
    guard = ReplayGuard(model, every=1, on_mismatch="warn")

    with pytest.warns(samebits.SamebitsWarning, match=r"only the second gave other bits") as caught:
        guard(alternating(model), X)
    assert caught[0].filename == __file__


def test_a_mismatch_is_a_value(model):
    found = []
    ReplayGuard(model, every=1, on_mismatch=found.append)(alternating(model), X)

    assert pickle.loads(pickle.dumps(found[0])) == found[0]
    assert hash(found[0].kind)
    with pytest.raises(AttributeError):
        found[0].step = 3


def test_counters_are_saved_and_put_back(model):
    guard = ReplayGuard(model, every=3, on_mismatch=lambda mismatch: None)
    step = alternating(model)
    for _ in range(4):
        guard(step, X)
    state = guard.state_dict()

    other = ReplayGuard(model, every=3)
    other.load_state_dict(state)

    assert (other.steps, other.replays) == (4, guard.replays)
    other(lambda x: model(x).sum().backward(), X)
    assert other.replays == guard.replays  # step 4 is not due
    assert state == other.state_dict() | {"steps": 4}


@pytest.mark.parametrize("state", [None, {}, {"steps": 1}, {"steps": -1, "replays": 0, "mismatches": {}}])
def test_a_foreign_state_is_refused(model, state):
    with pytest.raises(SamebitsError) as raised:
        ReplayGuard(model).load_state_dict(state)
    assert raised.value.slug == "replay-state"


# Things that scripts do.


class AverageMeter:
    """As half of all training scripts have it."""

    def __init__(self):
        self.sum, self.count, self.recent = 0.0, 0, []

    def update(self, value):
        """Add a value."""
        self.sum, self.count = self.sum + value, self.count + 1
        self.recent.append(value)


def test_meters_metrics_and_arrays_are_counted_once(model):
    class Metric(torch.nn.Module):
        """A running total."""

        def __init__(self):
            super().__init__()
            self.total = torch.zeros(())
            self.register_buffer("seen", torch.zeros(3))

    meter, metric, confusion = AverageMeter(), Metric(), np.zeros((2, 2))
    long = [0.0] * 150_000

    def step(x):
        loss = model(x).square().sum()
        loss.backward()
        meter.update(loss.item())
        metric.total = metric.total + loss.detach()
        metric.seen += 1
        confusion[0, 1] += 1
        long.append(loss.item())

    guarded(model, step, X)

    assert (meter.count, len(meter.recent), confusion[0, 1], len(long)) == (4, 4, 4, 150_004)
    assert metric.seen[0] == 4
    assert metric.total.item() == pytest.approx(meter.sum)


def test_a_backward_pass_after_the_call():
    """The step does the forward pass only; its graph must live on."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    x = torch.randn(5, 4)

    loss = ReplayGuard(net, every=1)(lambda x: net(x).square().mean(), x)
    loss.backward()

    assert net[0].weight.grad is not None


@pytest.mark.parametrize("sparse", [False, True])
def test_embeddings_with_shared_weights_and_sparse_gradients(sparse):
    torch.manual_seed(0)
    embed = torch.nn.Embedding(10, 4, sparse=sparse)
    body = torch.nn.Linear(4, 4)
    net = torch.nn.ModuleList([embed, body])
    tokens = torch.tensor([1, 2, 2, 3])
    guard = ReplayGuard(net, every=1)
    for _ in range(3):  # gradients accumulate
        guard(lambda tokens: body(embed(tokens)).square().sum().backward(), tokens)

    assert guard.replays == 3


def test_gradients_of_gradients(model):
    def step(x):
        out = model(x).square().sum()
        (gradient,) = torch.autograd.grad(out, model.weight, create_graph=True)
        (out + gradient.square().sum()).backward()
        return out

    assert guarded(model, step, X).replays == 4


def test_several_modules_have_names(model):
    other = torch.nn.Linear(2, 1)
    calls = iter(range(100))
    found = []

    def step(x):
        (other(model(x)) * (2 if next(calls) == 2 else 1)).sum().backward()

    ReplayGuard(model, other, every=1, on_mismatch=found.append)(step, X)

    names = [each.name for each in found[0].tensors]
    assert names == [f"gradient Linear[{n}].{part}" for n in (0, 1) for part in ("weight", "bias")]


class Callable:
    """A step that is an object."""

    def __init__(self, model):
        self.model, self.calls = model, 0

    def __call__(self, x, *, scale):
        """The step."""
        self.calls += 1
        loss = (self.model(x) * scale).sum()
        loss.backward()
        return loss


def test_steps_that_are_objects_partials_and_builtins(model):
    import functools

    step = Callable(model)
    guard = ReplayGuard(model, every=1)
    guard(step, X, scale=2)
    guard(functools.partial(step, scale=3), X)
    guard(functools.partial(functools.partial(step), X, scale=3))
    guard(len, [1, 2])

    assert step.calls == 3
    assert guard.steps == guard.replays == 4


def test_frozen_parameters_and_other_dtypes():
    net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Linear(2, 1)).double()
    net[0].requires_grad_(False)
    guard = guarded(net, lambda x: net(x).sum().backward(), X.double())

    assert guard.replays == 4
    assert net[0].weight.grad is None


def test_lazy_parameters_are_guarded_once_they_exist():
    net = torch.nn.Sequential(torch.nn.LazyLinear(2))
    guard = ReplayGuard(net, every=1)
    for _ in range(3):
        guard(lambda x: net(x).sum().backward(), X)

    assert (guard.steps, guard.replays) == (3, 2)


def test_without_gradients(model):
    guard = ReplayGuard(model, every=1)
    with torch.no_grad():
        guard(lambda x: model(x).sum(), X)
    with torch.inference_mode():
        guard(lambda x: model(x).sum(), X)

    assert guard.replays == 2


def test_a_step_that_could_not_be_checked_is_no_replay_and_is_looked_at_the_next_time(model):
    """There was no memory for the look at what it writes to: that look comes with the next step."""
    outside = torch.zeros(2)

    def write(gradient):
        outside.add_(gradient.sum())

    model.weight.register_hook(write)
    calls = iter(range(10))

    def step(x):
        if next(calls) in (1, 2):
            raise torch.OutOfMemoryError("no memory")
        model(x).sum().backward()

    guard = ReplayGuard(model, every=1)
    with pytest.warns(samebits.SamebitsWarning, match="no memory to execute"):
        guard(step, X)
    assert (guard.steps, guard.replays) == (1, 0)
    with pytest.raises(SamebitsError, match="writes to memory that existed before"):
        guard(step, X)


def test_arrays_of_all_kinds_are_compared(model):
    """Reversed ones, those that must not be written to, and those with more bits than torch knows."""

    def step(x, kind, values):
        model(x).sum().backward()
        return kind(values())

    wide = np.longdouble(1) + np.finfo(np.longdouble).eps
    for kind in (
        lambda value: np.array([value, 2.0])[::-1],
        lambda value: np.array([1 if value else wide], dtype=np.longdouble),
        lambda value: np.broadcast_to(value, (3,)),
    ):
        values = iter([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]).__next__
        with pytest.raises(ReplayMismatchError) as caught:
            ReplayGuard(model, every=1)(step, X, kind, values)
        assert [each.name for each in caught.value.mismatch.tensors] == ["output"]


def test_higher_order_ops_are_audited_by_their_ops(model):
    """What a branch of `torch.cond` writes to is seen."""
    held = [torch.zeros(2, 4)]

    def add(gradient):
        branches = (lambda given: held[0].add_(given) * 2, lambda given: given * 2)
        torch.ops.higher_order.cond(torch.tensor(True), *branches, (gradient,))

    model.weight.register_hook(add)

    with pytest.raises(SamebitsError, match="aten::add_"):
        ReplayGuard(model, every=1)(lambda x: model(x).sum().backward(), X)


def test_a_step_that_cannot_be_watched_is_compared_all_the_same(model):
    """Watched code is not compiled, and without the compiler what a branch captures has no gradients."""

    def step(x):
        y = torch.cond(x.sum() > 0, lambda t: model(t) * 2, lambda t: -model(t), (x,))
        y.sum().backward()
        return y

    guard = ReplayGuard(model, every=1)
    with pytest.warns(samebits.SamebitsWarning, match="cannot see what the step writes to"):
        guard(step, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is not watched again
        guard(step, X)

    assert guard.replays == 2


def test_what_a_step_wrote_to_is_told_though_it_could_not_be_watched_to_its_end(model):
    held = [torch.zeros(2)]
    layer = torch.nn.Linear(4, 4)
    layer.register_forward_hook(lambda *_: (held[0].add_(1), None)[1])

    def step(x):
        y = layer(x)
        torch.cond(x.sum() > 0, lambda t: model(t) * 2, lambda t: -model(t), (y,)).sum().backward()

    with pytest.raises(SamebitsError, match="aten::add_"), pytest.warns(samebits.SamebitsWarning):
        ReplayGuard(torch.nn.ModuleList([layer, model]), every=1)(step, X)


def test_a_compiled_step_stays_compiled(model):
    """The compiler leaves code alone for ever that ran while a dispatch mode was on."""
    calls = []

    def backend(graph, _):
        return lambda *given: (calls.append(None), graph.forward(*given))[1]

    compiled = torch.compile(torch.nn.functional.linear, backend=backend)
    guard = ReplayGuard(model, every=1)
    for _ in range(3):
        guard(lambda x: compiled(x, model.weight).sum().backward(), X)

    assert len(calls) == 6
