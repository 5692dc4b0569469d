"""What step-level recording sees of real training code, in this process."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from samebits.recording.session import record  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402


def events_of(path, *kinds):
    with RecordReader(path) as reader:
        return list(reader.events(kinds=kinds))


def names(event, role):
    return [info.name for info in event.tensors if info.role == role]


def train(model, optimizer, steps=3, inputs=None):
    inputs = torch.arange(12.0).reshape(4, 3) if inputs is None else inputs
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(inputs).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss


@pytest.fixture
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def test_each_optimizer_step_is_a_boundary_with_all_of_the_state(tmp_path, model):
    """Parameters, buffers and optimizer state are digested at every `Optimizer.step`."""
    with record(tmp_path / "a.sbr") as path:
        train(model, torch.optim.Adam(model.parameters()))
    steps = events_of(path, "step")

    assert [e.op for e in steps] == ["Adam.step"] * 3 + ["end"]
    assert [e.step for e in steps] == [0, 1, 2, 3]
    assert names(steps[0], "param") == [n for n, _ in model.named_parameters()]
    assert names(steps[0], "buffer") == [n for n, _ in model.named_buffers()]
    assert "0.weight.exp_avg" in names(steps[0], "optimizer")
    assert steps[0].digests[0] != steps[1].digests[0]


def test_loss_and_gradients_are_recorded_at_backward(tmp_path, model):
    """Each backward gives one loss and one gradient per parameter."""
    with record(tmp_path / "a.sbr") as path:
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)
    losses, grads = events_of(path, "loss"), events_of(path, "grad")

    assert len(losses) == len(grads) == 2
    assert names(grads[0], "grad") == [n for n, _ in model.named_parameters()]
    assert losses[0].site.function == "train"


def test_clipped_gradients_are_recorded_again_before_the_step(tmp_path, model):
    """Gradients that change between backward and step show at the step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tmp_path / "a.sbr") as path:
        model(torch.ones(4, 3)).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
    grads = events_of(path, "grad")

    assert [e.op for e in grads] == ["backward", "SGD.step"]
    assert grads[0].digests != grads[1].digests


def test_lbfgs_closures_belong_to_one_step(tmp_path, model):
    """A step that calls its closure many times is one boundary."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).pow(2).sum()
        loss.backward()
        return loss

    with record(tmp_path / "a.sbr") as path:
        optimizer.step(closure)
        optimizer.step(closure)
    steps = events_of(path, "step")

    assert [e.op for e in steps] == ["LBFGS.step", "LBFGS.step", "end"]
    assert any("old_dirs" in n for n in names(steps[1], "optimizer"))
    assert len(events_of(path, "loss")) > 2


def test_gradient_accumulation_counts_steps_not_backwards(tmp_path, model):
    """Two backward passes per step are two losses and one boundary."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tmp_path / "a.sbr") as path:
        for _ in range(2):
            for _ in range(2):
                model(torch.ones(4, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    assert len(events_of(path, "loss")) == 4
    assert [e.step for e in events_of(path, "step")] == [0, 1, 2]


def test_several_optimizers_and_models_are_named_apart(tmp_path):
    """A GAN: both models' parameters are in the state, under their own names."""
    with record(tmp_path / "a.sbr") as path:
        first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        one, two = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second))
        for optimizer, model in ((one, first), (two, second)):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    steps = events_of(path, "step")

    assert len(steps) == 3
    assert len(set(names(steps[0], "param"))) == 4


@pytest.mark.parametrize(
    ("backwards", "optimizers", "steps"),
    [
        (1, 2, 3),  # one pass, two optimizers
        (2, 1, 3),  # gradients of two passes
        (2, 2, 3),
    ],
)
def test_a_record_counts_its_steps_as_its_events_do(tmp_path, model, backwards, optimizers, steps):
    """Accumulated gradients and several optimizers after one pass make one step."""
    made = [torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(optimizers)]
    with record(tmp_path / "a.sbr") as path:
        for _ in range(3):
            for _ in range(backwards):
                model(torch.arange(6.0).reshape(2, 3)).sum().backward()
            for optimizer in made:
                optimizer.step()
    events = [event for event in events_of(path, "step") if event.op != "end"]

    with RecordReader(path) as reader:
        counts = {reader.n_steps(), reader.info.steps, len({event.step for event in events})}
    assert counts == {steps}


def test_an_optimizer_with_a_closure_makes_one_step_for_each_call(tmp_path, model):
    """LBFGS runs the closure several times in one call."""
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.arange(6.0).reshape(2, 3)).square().sum()
        loss.backward()
        return loss

    with record(tmp_path / "a.sbr") as path:
        for _ in range(2):
            optimizer.step(closure)

    with RecordReader(path) as reader:
        assert (reader.n_steps(), reader.info.steps) == (2, 2)


def test_hand_written_updates_are_steps_at_the_end_of_backward(tmp_path):
    """Without an optimizer, bare leaves are found in the graph."""
    weight = torch.ones(3, requires_grad=True)
    with record(tmp_path / "a.sbr") as path:
        for _ in range(3):
            (weight**2).sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
            weight.grad = None
    steps = events_of(path, "step")

    assert [e.op for e in steps] == ["backward"] * 3 + ["end"]
    assert len({e.digests for e in steps}) == 4


def test_reads_are_no_steps_and_count_where_nothing_is_trained(tmp_path, model):
    """Inference: a comparison counts each value that leaves torch."""
    with record(tmp_path / "a.sbr") as path, torch.no_grad():
        for _ in range(3):
            model.eval()(torch.ones(1, 3)).sum().item()
    reads = events_of(path, "read")

    assert [e.step for e in reads] == [0, 0, 0]
    with RecordReader(path) as reader:
        assert (reader.info.steps, reader.n_steps()) == (0, 3)


@pytest.mark.parametrize(
    ("take", "op"),
    [
        (lambda t: t.item(), "item"), (lambda t: t.tolist(), "tolist"), (lambda t: t.numpy(), "numpy"),
        (float, "float"), (int, "int"), (bool, "bool"), (repr, "repr"), (lambda t: f"{t:.3f}", "format"),
        (lambda t: __import__("numpy").asarray(t), "numpy"),
    ],
)  # fmt: skip
def test_every_way_out_of_torch_is_one_read(tmp_path, take, op):
    """A value is recorded once, whatever takes it, with the digest of the tensor."""
    value = torch.tensor(1.5)
    with record(tmp_path / "a.sbr") as path:
        take(value)
    reads = events_of(path, "read")

    assert [e.op for e in reads] == [op]


def test_what_asyncio_shows_of_its_own_task_is_no_read(tmp_path):
    """`asyncio.run` makes a text of its main task, and so of the tensors that the task returned."""

    @dataclasses.dataclass
    class Loaded:
        rows: torch.Tensor

    async def load():
        return [torch.ones(2), Loaded(torch.zeros(2))]

    with record(tmp_path / "a.sbr") as path:
        loaded = asyncio.run(load())
        repr(loaded[0])
    reads = events_of(path, "read")

    assert [e.op for e in reads] == ["repr"]


def test_batches_of_any_structure_are_recorded(tmp_path):
    """Dictionaries, nested tuples and strings are part of the batch."""
    data = [{"x": torch.full((2,), float(i)), "y": (i, "name")} for i in range(4)]
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    with record(tmp_path / "a.sbr") as path:
        for _ in loader:
            pass
    batches = events_of(path, "batch")

    assert len(batches) == 2
    assert [info.name for info in batches[0].tensors] == ["x", "y.0", "others"]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_worker_processes_record_nothing_and_their_batches_are_seen(tmp_path, context):
    """Batches made by workers are recorded once, by the parent."""
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context=context)
    with record(tmp_path / "a.sbr", level="op") as path:
        for _ in loader:
            pass

    assert len(events_of(path, "batch")) == 4


def test_saves_hold_the_tensors_of_the_checkpoint_only(tmp_path, model):
    """A date in a checkpoint is no tensor."""
    with record(tmp_path / "a.sbr") as path:
        torch.save({"model": model.state_dict(), "when": "now"}, tmp_path / "c.pt")
    saves = events_of(path, "save")

    assert len(saves) == 1
    assert len(saves[0].tensors) == len(model.state_dict())


def test_generator_states_are_recorded_at_each_boundary(tmp_path, model):
    """A draw between two steps changes that source only."""
    import random

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tmp_path / "a.sbr") as path:
        train(model, optimizer, 1)
        random.random()
        train(model, optimizer, 1)
    states = [event for event in events_of(path, "rng") if event.op == "state"]
    first, second = (dict(zip([i.name for i in e.tensors], e.digests, strict=True)) for e in states[1:3])

    assert {n for n in first if first[n] != second[n]} == {"python"}


def test_grad_scaler_and_scheduler(tmp_path, model):
    """Unscaled gradients are seen; a scheduler adds no boundary."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.amp.GradScaler("cpu")
    with record(tmp_path / "a.sbr") as path:
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.ones(4, 3)).float().sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()

    assert len(events_of(path, "step")) == 3
    assert Counter(e.op for e in events_of(path, "grad")) == {"backward": 2, "SGD.step": 2}


def test_probes_leave_nothing_behind(tmp_path):
    """Every attribute that was replaced is the one from before."""
    watched = [
        (torch.Tensor, "item"), (torch.Tensor, "__bool__"), (torch.nn.Module, "__init__"), (torch, "save"),
        (torch.nn.Module, "__call__"), (torch.autograd, "backward"), (torch, "manual_seed"),
        (torch.optim.Optimizer, "__init__"), (torch, "compile"),
    ]  # fmt: skip
    before = [(vars(o).get(n), getattr(o, n)) for o, n in watched]
    with record(tmp_path / "a.sbr", level="op"):
        assert [getattr(o, n) for o, n in watched] != [found for _, found in before]
    after = [(vars(o).get(n), getattr(o, n)) for o, n in watched]

    assert before == after
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
