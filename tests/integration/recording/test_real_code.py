"""Recording leaves real code as it is: warnings, modes, memory, unusual modules and batches."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import threading
import warnings
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from samebits.recording.session import RecordingSession, record  # noqa: E402
from samebits.recording.settings import RecordingSettings  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402

LEVELS = pytest.mark.parametrize("level", ["step", "op"])


def events_of(path, *kinds):
    with RecordReader(path) as reader:
        return list(reader.events(kinds=kinds))


def names(event, role):
    return [info.name for info in event.tensors if info.role == role]


def train(model, optimizer, inputs, steps=1):
    for _ in range(steps):
        optimizer.zero_grad()
        model(inputs).pow(2).mean().backward()
        optimizer.step()


class CountsFunctions(TorchFunctionMode):
    """A mode of the script."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


class CountsOps(TorchDispatchMode):
    """Another one."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.seen.append(str(op))
        return op(*args, **(kwargs or {}))


class Counted(torch.Tensor):
    """Counts how often it is asked."""

    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def watched_training():
    """What the modes of a script see of two steps."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    with CountsOps() as ops, CountsFunctions() as functions:
        train(model, optimizer, torch.ones(2, 3), steps=2)
        model.weight.sum().item()
    return ops.seen, functions.seen


@LEVELS
def test_the_modes_of_a_script_see_what_they_see_without_recording(tmp_path, level):
    """A script that counts ops by a mode of its own counts none of samebits'."""
    expected = watched_training()
    with record(tmp_path / "a.sbr", level=level):
        assert watched_training() == expected


def test_tensor_subclasses_are_not_asked_by_probes(tmp_path):
    """`__torch_function__` of the script's own class runs as often as without recording."""

    def calls():
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        model.weight = torch.nn.Parameter(torch.ones(2, 3).as_subclass(Counted))
        Counted.calls = 0
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, 3))
        return Counted.calls

    expected = calls()
    with record(tmp_path / "a.sbr"):
        assert calls() == expected


@pytest.mark.parametrize("convert", [float, int, bool, complex])
def test_a_warning_of_torch_names_the_line_of_the_script(tmp_path, convert):
    """Converting a tensor that requires grad warns at the script's line, not in samebits."""
    with record(tmp_path / "a.sbr") as path, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch._C._set_warnAlways(True)
        try:
            convert(torch.tensor(2.0, requires_grad=True))
        finally:
            torch._C._set_warnAlways(False)
    assert [event.op for event in events_of(path, "read")] == [convert.__name__]
    assert {warning.filename for warning in caught} <= {__file__}


def test_patched_functions_look_like_the_originals(tmp_path):
    """Name and signature of what the probes replace are those of torch."""

    def looks():
        functions = (
            torch.manual_seed, torch.seed, torch.save, torch.autograd.backward, torch.autograd.grad,
            torch.nn.Module.__init__, torch.nn.Module.__call__, torch.optim.Optimizer.__init__,
            torch.Tensor.__repr__,
        )  # fmt: skip
        return [(f.__name__, inspect.signature(f)) for f in functions]

    expected = looks()
    with record(tmp_path / "a.sbr", level="op"):
        found = looks()
    assert found == expected


class TakesModule(torch.nn.Module):
    """Has arguments with the names that probes use."""

    def forward(self, x, module, tensor):  # noqa: D102
        return x + module + tensor


class TakesOptimizer(torch.optim.SGD):
    """Wraps another optimizer."""

    def __init__(self, params, optimizer=None):
        super().__init__(params, lr=0.1)
        self.inner = optimizer


@LEVELS
def test_arguments_may_have_any_name(tmp_path, level):
    """`model(x, module=…)` is not taken for an argument of a probe."""
    with record(tmp_path / "a.sbr", level=level):
        one = torch.ones(1)
        assert TakesModule()(one, module=one, tensor=one).item() == 3
        assert TakesOptimizer([torch.nn.Parameter(one)], optimizer="inner").inner == "inner"


class NeverInitialised(torch.nn.Module):
    """Forgets `super().__init__()`."""

    def __init__(self):
        pass


@LEVELS
def test_a_module_that_is_not_made_fails_as_in_torch(tmp_path, level):
    """The errors that torch gives for a forgotten `super().__init__()` stay the same."""

    def failure(call):
        with pytest.raises((AttributeError, TypeError)) as caught:
            call()
        return str(caught.value)

    broken = [lambda: NeverInitialised()(1), lambda: torch.nn.Module.__init__()]  # noqa: PLW0108 - looked up late
    expected = [failure(call) for call in broken]
    with record(tmp_path / "a.sbr", level=level):
        assert [failure(call) for call in broken] == expected


class Shifted(torch.nn.Module):
    """Has a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):  # noqa: D102
        return x + self.shift


@LEVELS
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_modules_take_part(tmp_path, level):
    """A traced module keeps its tensors elsewhere than other modules; they are found all the same."""
    with record(tmp_path / "a.sbr", level=level) as path:
        plain = torch.nn.Sequential(torch.nn.Linear(3, 2), Shifted())
        traced = torch.jit.trace(plain, torch.ones(4, 3), check_trace=False)
        del plain
        train(traced, torch.optim.SGD(traced.parameters(), lr=0.1), torch.ones(4, 3), steps=2)
    step = events_of(path, "step")[-2]
    assert len(names(step, "param")) == 2
    assert any(name.endswith("shift") for name in names(step, "buffer"))


@LEVELS
def test_lazy_parameters_join_the_state_once_they_have_contents(tmp_path, level):
    """A lazy layer that gets its shape after the first step is part of the state from then on."""
    with record(tmp_path / "a.sbr", level=level) as path:
        first, lazy = torch.nn.Linear(3, 2), torch.nn.LazyLinear(1)
        optimizer = torch.optim.SGD([*first.parameters(), *lazy.parameters()], lr=0.1)
        train(first, optimizer, torch.ones(2, 3))
        train(torch.nn.Sequential(first, lazy), optimizer, torch.ones(2, 3))
    before, after = events_of(path, "step")[:2]
    assert len(names(before, "param")) == 2
    assert len(names(after, "param")) == 4


@pytest.mark.filterwarnings("ignore")
def test_jagged_tensors_are_recorded_by_op(tmp_path):
    """A nested tensor whose shape has a symbol in it does not stop the script."""
    with record(tmp_path / "a.sbr", level="op"):
        rows = [torch.ones(2, 3), torch.ones(4, 3)]
        nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
        assert (nested * 2).sum().item() == 36


def test_inputs_that_require_grad_are_held_no_longer_than_the_script_holds_them(tmp_path):
    """Adversarial training makes a new leaf per step: none stays in memory or in the state."""
    alive = []

    def attack(model, optimizer):
        inputs = torch.randn(4, 3, requires_grad=True)
        alive.append(weakref.ref(inputs))
        model(inputs).sum().backward()
        train(model, optimizer, (inputs + inputs.grad.sign()).detach())

    with record(tmp_path / "a.sbr") as path:
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(6):
            attack(model, optimizer)
        assert [reference() for reference in alive] == [None] * 6
    steps = events_of(path, "step")
    assert {tuple(names(step, "param")) for step in steps[:-1]} == {("weight", "bias", "leaf0")}


@pytest.mark.parametrize("within", [False, True])
def test_a_half_made_module_hides_no_trained_tensor(tmp_path, within):
    """One that was there before, such as in a notebook where a class of the user's failed in `__init__`."""
    older = torch.nn.Module.__new__(torch.nn.Linear)
    if within:
        older = torch.nn.Sequential(torch.nn.ReLU(), older)
    weight = torch.zeros(2, requires_grad=True)
    with record(tmp_path / "a.sbr") as path:
        (weight - 1).pow(2).sum().backward()
    assert older is not None

    steps = events_of(path, "step")
    assert names(steps[0], "param") == ["leaf0"]


def test_a_hand_written_loop_in_a_function_keeps_its_state(tmp_path):
    """Tensors that the script trains itself are in the state for as long as they live."""

    def fit():
        weight = torch.zeros(2, requires_grad=True)
        for _ in range(3):
            (weight - 1).pow(2).sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
                weight.grad.zero_()

    with record(tmp_path / "a.sbr") as path:
        fit()
    steps = events_of(path, "step")
    assert [names(step, "param") for step in steps] == [["leaf0"]] * 3 + [[]]
    assert [names(grad, "grad") for grad in events_of(path, "grad")] == [["leaf0"]] * 3


def test_a_deleted_model_and_its_optimizer_are_freed_at_once(tmp_path):
    """`del model, optimizer` gives their memory back, as it does without recording."""
    with record(tmp_path / "a.sbr"):
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        train(model, optimizer, torch.ones(2, 3))
        held = [weakref.ref(x) for x in (model.weight, optimizer.state[model.weight]["exp_avg"])]
        del model, optimizer
        gc.collect()
        assert [reference() for reference in held] == [None, None]


class KeepsVariable(torch.autograd.Function):
    """Its node has an attribute of the name that leaves have."""

    @staticmethod
    def forward(ctx, x):  # noqa: D102
        ctx.variable = 3
        return x * ctx.variable

    @staticmethod
    def backward(ctx, gradient):  # noqa: D102
        return gradient * ctx.variable


def test_a_custom_function_may_call_an_attribute_variable(tmp_path):
    """The walk over the graph tells leaves from nodes of the script's own making."""
    with record(tmp_path / "a.sbr"):
        x = torch.ones(2, requires_grad=True)
        KeepsVariable.apply(x).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]


@dataclasses.dataclass
class HalfFilled:
    """A field has no value yet."""

    x: torch.Tensor
    later: int = dataclasses.field(init=False)


class Refuses:
    """Fails whatever it is asked."""

    def __getattr__(self, name):
        raise RuntimeError(name)


@pytest.mark.parametrize("make", [lambda x: HalfFilled(x=x), lambda _: Refuses()])
def test_batches_that_cannot_be_looked_into_are_left_alone(tmp_path, make):
    """An object of the script's own that raises when it is looked at does not stop the loop."""
    data = torch.utils.data.DataLoader(
        [torch.ones(2)] * 4, 2, collate_fn=lambda rows: make(torch.stack(rows))
    )
    with record(tmp_path / "a.sbr"):
        assert len(list(data)) == 2


def test_arrays_of_objects_are_digested_by_value(tmp_path):
    """Two batches with equal strings in arrays of objects have equal digests, wherever the strings lie."""

    def rows(batch):
        return {
            "x": torch.stack(batch),
            "names": np.array(["".join(["n", str(k)]) for k in range(2)], object),
        }

    with record(tmp_path / "a.sbr") as path:
        list(torch.utils.data.DataLoader([torch.ones(2)] * 4, 2, collate_fn=rows))
    first, second = events_of(path, "batch")
    assert first.digests == second.digests
    assert len(first.digests) == 2


def test_threads_keep_a_run_of_their_own(tmp_path):
    """What the script put on a thread is there afterwards, also when a second start fails."""
    done = []
    with record(tmp_path / "a.sbr", level="op"):
        thread = threading.Thread()
        thread.run = run = lambda: done.append(torch.ones(2).sum().item())
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="once"):
            thread.start()
        assert thread.run is run
    assert done == [2.0]


def test_a_reference_may_be_followed_from_another_thread(tmp_path):
    """A run that is compared with another while it goes on may make its steps in any thread."""

    def training():
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, 3), steps=3)

    def in_thread(errors):
        def guarded():
            try:
                training()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()

    errors = []
    with record(tmp_path / "a.sbr"):
        in_thread(errors)
    settings = RecordingSettings(record=str(tmp_path / "b.sbr"), reference=str(tmp_path / "a.sbr"))
    session = RecordingSession(settings, ("test",))
    session.start()
    try:
        in_thread(errors)
    finally:
        session.finish()
    assert errors == []
    assert len(events_of(tmp_path / "b.sbr", "step")) == 4
