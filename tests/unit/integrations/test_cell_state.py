"""The state that a cell begins with: whatever a cell changes in place is put back, bit for bit."""

from __future__ import annotations

import collections
import functools
import random
from typing import Any

import numpy as np
import pytest
import torch

from samebits.commands.cell_facts import Left
from samebits.integrations._cell_state import CellState

SETUP = """
import collections, functools, io, random
import numpy as np
import torch

class Slotted:
    __slots__ = ("value", "other")
    def __init__(self):
        self.value = [1]

class Meter:
    total = 0
    def add(self, n):
        self.sum = getattr(self, "sum", 0) + n
        Meter.total += n

def counter():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count

class Logged:
    @property
    def level(self):
        return self.held
    @level.setter
    def level(self, value):
        self.held = value
        levels.append(value)

class Private(list):
    def __iter__(self):
        raise ZeroDivisionError

def bump():
    seen["n"] += 1

seen = {"n": 0}
count = counter()
levels, logged, private = [], Logged(), Private([1])
meter, slotted = Meter(), Slotted()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
data = torch.arange(12.0).reshape(4, 3)
half = data[:2]
flags = torch.zeros(2)
array, objects = np.arange(4.0), np.array([[1], [2]], dtype=object)
items, table, names, recent, raw = [1, [2]], {"a": [1]}, {"x"}, collections.deque([1], 3), bytearray(b"ab")
ordered, grouped = collections.OrderedDict(a=1, b=2), collections.defaultdict(list)
generator, python, source = np.random.default_rng(3), random.Random(3), torch.Generator().manual_seed(3)
partial = functools.partial(lambda held: held.append(1), [])
text = "old"
coo, csr = torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()
masked = np.ma.array([1.0, 2.0], mask=[False, True])
lazy, plain = torch.nn.LazyLinear(2), torch.nn.Linear(3, 3)
weight = torch.ones(2, requires_grad=True)
total, free = (weight * 2).sum(), torch.zeros(2)
kept = weight * 2
kept.retain_grad()
μ = torch.ones(2)
"""

CHANGES = {
    "a variable": "text = 'new'",
    "a new variable": "other = 1",
    "a deleted variable": "del text",
    "a list": "items.append(3)",
    "a nested list": "items[1].append(3)",
    "a dict": "table['a'].append(2); table['b'] = 1",
    "a set": "names.add('y')",
    "a deque": "recent.extend([2, 3, 4])",
    "a bytearray": "raw[0] = 0",
    "an ordered dict": "ordered.move_to_end('a'); ordered['c'] = 3",
    "a default": "grouped['x'].append(1)",
    "attributes": "meter.add(2)",
    "a class": "Meter.total = 7; Meter.fresh = 1",
    "a global of a setter": "logged.level = 3",
    "a list that is not iterated": "private.append(2)",
    "slots": "slotted.value.append(2); slotted.other = 1",
    "a closure": "count(); count()",
    "a global of a function": "bump()",
    "an argument of a partial": "partial()",
    "an attribute of a function": "bump.calls = 1",
    "a tensor": "data.mul_(2)",
    "a view": "half.zero_()",
    "another memory": "flags.data = torch.ones(3)",
    "another size": "flags.resize_(100).fill_(1)",
    "requires_grad": "flags.requires_grad_(True)",
    "an array": "array += 1",
    "an array of objects": "objects[0, 0] = 5",
    "training": """
model.train()
for _ in range(2):
    optimizer.zero_grad()
    model(data).square().mean().backward()
    optimizer.step()
    schedule.step()
""",
    "a mode": "model.eval(); model[0].weight.requires_grad_(False)",
    "a gradient": "model(data).sum().backward()",
    "a hook": "model.register_forward_hook(lambda *_: None)",
    "another layer": "model.append(torch.nn.Tanh()); model[0] = torch.nn.Linear(3, 4)",
    "a generator of NumPy": "generator.normal(size=3)",
    "a generator of Python": "python.random()",
    "a generator of torch": "torch.rand(2, generator=source)",
    "a sparse tensor": "coo.mul_(2); csr.mul_(2)",
    "a masked array": "masked += 1; masked[0] = np.ma.masked",
    "a lazy layer": "lazy(torch.ones(2, 4))",
    "parametrizations": "plain = torch.nn.utils.parametrizations.weight_norm(plain); plain(torch.ones(1, 3))",
    "a hook of a tensor": "weight.register_hook(lambda grad: grad * 2); (weight * 3).sum().backward()",
    "a hook after a gradient": """
weight.register_post_accumulate_grad_hook(lambda held: None)
(weight * 3).sum().backward()
""",
    "a gradient of what a graph reaches": "total.backward(retain_graph=True)",
    "a gradient that is kept": "(kept * 3).sum().backward(retain_graph=True)",
    "a tensor that joins a graph": "free[0] = weight[0] * 2",
    "a name that Python spells otherwise": "\u00b5.mul_(2)",
}


KINDS = {
    torch.nn.UninitializedParameter: lambda _: "uninitialized",
    torch.Tensor: lambda tensor: (
        (type(tensor), tensor.dtype, tuple(tensor.shape)),
        tensor.to_dense().tolist(),
        (tensor.requires_grad, tensor.is_leaf),
        shown(tensor.grad) if tensor.is_leaf or tensor.retains_grad else None,
        [len(held or ()) for held in (tensor._backward_hooks, tensor._post_accumulate_grad_hooks)],
    ),
    torch.nn.Module: lambda module: [
        (
            [len(each._forward_hooks) for each in module.modules()],
            [each.training for each in module.modules()],
            [[kind.__name__ for kind in type(each).__mro__] for each in module.modules()],
        ),
        [(name, shown(value)) for name, value in (*module.named_parameters(), *module.named_buffers())],
    ],
    (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler): lambda value: shown(value.state_dict()),
    np.ma.MaskedArray: lambda array: (array.data.tolist(), array.mask.tolist()),
    np.ndarray: lambda array: (array.tolist(), str(array.dtype)),
    dict: lambda value: [(key, shown(item)) for key, item in value.items()],
    list: lambda value: [shown(item) for item in list.__iter__(value)],
    (tuple, collections.deque): lambda value: [shown(item) for item in value],
    set: sorted,
    bytearray: bytes,
    torch.Generator: lambda value: value.get_state().tolist(),
    random.Random: lambda value: value.getstate(),
    np.random.Generator: lambda value: value.bit_generator.state,
    functools.partial: lambda value: shown(value.args),
}


def shown(value: Any) -> Any:
    """The contents of a value, for comparison."""
    show = next((show for kind, show in KINDS.items() if isinstance(value, kind)), lambda value: value)
    return show(value)


def run(code: str, space: dict[str, Any]) -> None:
    """Run code in a namespace."""
    exec(code, space)  # noqa: S102 - as a notebook does


def contents(space: dict[str, Any]) -> dict[str, Any]:
    """Everything in the namespace that a change can reach."""
    held = {name: shown(value) for name, value in space.items() if not name.startswith("__")}
    slots = {name: getattr(space["slotted"], name, None) for name in ("value", "other")}
    return {
        **held,
        "attributes": dict(vars(space["meter"])),
        "class": {name: value for name, value in vars(space["Meter"]).items() if not name.startswith("__")},
        "slots": shown(slots),
        "closure": space["count"].__closure__[0].cell_contents,
        "function": dict(vars(space["bump"])),
    }


@pytest.fixture
def space() -> dict[str, Any]:
    """A notebook's variables."""
    variables: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    run(SETUP, variables)
    return variables


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_cell_changes_is_put_back(space, change):
    """Before the second run all is as before the first; in the end all is as after the first."""
    cell, start, objects = CHANGES[change], contents(space), dict(space)
    state = CellState(space, cell)
    before = state.read()
    run(cell, space)
    ended = contents(space)
    after = state.read(before)
    assert ended != start

    state.restore(before)

    assert contents(space) == start
    assert all(space[name] is objects[name] for name in objects)
    run(cell, space)
    state.restore(after)
    assert contents(space) == ended


@pytest.mark.parametrize("change", CHANGES)
def test_the_second_run_does_what_the_first_did(space, change):
    """Bit for bit."""
    cell = CHANGES[change]
    state = CellState(space, cell)
    before = state.read()
    results = []
    for _ in range(2):
        state.restore(before)
        torch.manual_seed(5)
        run(cell, space)
        results.append({name: repr(value) for name, value in contents(space).items()})
    # Objects that the cell makes have other addresses.
    same = [name for name in results[0] if " at 0x" not in results[0][name]]
    assert [results[0][name] for name in same] == [results[1][name] for name in same]


LEFT = {
    "it = iter([1, 2])": Left.ITERATOR,
    "it = (n for n in range(3))": Left.ITERATOR,
    "it = zip('ab', 'cd')": Left.ITERATOR,
    "it = iter(torch.utils.data.DataLoader([1, 2]))": Left.ITERATOR,
    "it = open(functools.__file__)": Left.FILE,
    "it = functools.lru_cache(lambda n: n)": Left.CACHE,
    "it = model(data).sum()": Left.GRAPH,
    "it = {'deep': [iter(())]}": Left.ITERATOR,
}


@pytest.mark.parametrize("made", LEFT)
def test_what_cannot_be_put_back_is_named(space, made):
    """By the variable that the cell names; what it does not name does not matter."""
    run(made, space)
    used, unused = CellState(space, "print(it)"), CellState(space, "print(items)")

    assert [(each.variable, each.kind) for each in used.not_restored] == [("it", LEFT[made])]
    assert unused.not_restored == ()
    if hasattr(space["it"], "close"):
        space["it"].close()


def test_an_object_that_raises_errors_is_named(space):
    """A class may refuse whatever is asked of it; all else is put back."""

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError

    space["refusing"] = torch.ones(2).as_subclass(Refusing)
    state = CellState(space, "refusing, items")
    before = state.read()
    run("items.append(3)", space)
    state.read(before)
    state.restore(before)
    assert [(each.variable, each.kind) for each in state.not_restored] == [("refusing", Left.OPAQUE)]
    assert space["items"] == [1, [2]]


def test_only_what_the_cell_can_reach_is_copied(space):
    """A tensor that it does not name is left alone, even if something else changes it."""
    state = CellState(space, "items.append(1)")
    before = state.read()
    space["data"].zero_()
    state.restore(before)
    assert space["data"].sum() == 0


def test_memory_that_did_not_change_is_copied_once(space):
    """The state after a run shares the copies of the state before."""
    state = CellState(space, "data, array")
    before = state.read()
    after = state.read(before)
    assert all(a is b for a, b in zip(before.values, after.values, strict=True))


def test_changed_variables_are_found(space):
    """New, bound to another object, or changed inside; private ones are IPython's."""
    cell = "text = 'new'; items[1].append(1); data[0] = 5; other = 1; _hidden = 2"
    state = CellState(space, cell)
    before = state.read()
    run(cell, space)
    assert set(state.changed(before, state.read(before))) == {"text", "items", "data", "other"}
