"""The log of the state before each step: what a run writes, and reading it."""

from __future__ import annotations

import gc
import random
import sys
from collections import deque
from types import SimpleNamespace

import pytest
import torch

from samebits.commands.resume_check._state_log import before_step, read_lines, steps_before
from samebits.recording.probes.state_log import TrainingFacts
from samebits.recording.probes.variables import Variables
from samebits.recording.session import RecordingSession
from samebits.recording.settings import RecordingSettings


def train(tmp_path, steps=3):
    """Record some steps with a log; give its path."""
    log = tmp_path / "a.states"
    session = RecordingSession(RecordingSettings(str(tmp_path / "a.sbr"), state_log=str(log)), ("a.py",))
    session.start()
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2))
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for step, (x,) in enumerate(torch.utils.data.DataLoader(data, batch_size=2)):
        if step == steps:
            break
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        schedule.step()
    session.finish()
    return log


def test_what_a_run_logs(tmp_path):
    """State before the forward pass; settings before the step; the samples of batches."""
    log = train(tmp_path)

    lines, (first, second, third) = read_lines(log), steps_before(log)

    assert lines.n_steps == 3
    assert [batch.indices for batch in lines.batches] == [(0, 1), (2, 3), (4, 5)]
    assert [(batch.step, batch.pass_number, batch.number) for batch in lines.batches] == [
        (0, 0, 0), (1, 0, 1), (2, 0, 2),
    ]  # fmt: skip
    assert [p.workers for p in lines.passes] == [0]
    assert first.optimizer == ""
    assert second.optimizer != third.optimizer
    assert len({first.params, second.params, third.params}) == 3
    assert [row[:2] for row in first.tensors[:2]] == [("param", "0.weight"), ("param", "0.bias")]
    assert not second.tensors
    assert [b.settings["SGD group 0 lr"] for b in (first, second, third)] == ["0.1", "0.05", "0.025"]
    assert third.settings["ExponentialLR last_epoch"] == "2"
    assert [b.variables["train: step"] for b in (first, second, third)] == ["0", "1", "2"]
    assert before_step(log, 7) is None


@pytest.mark.parametrize("collecting", [False, True])
def test_two_schedules_keep_their_names(collecting):
    """A garbage collection between the making of two changes the order in which they are found."""
    state, optimizers, schedules = SimpleNamespace(optimizers=lambda: optimizers), [], []
    gc.collect()
    for size in (2, 3):
        optimizers.append(torch.optim.SGD([torch.zeros(1)], lr=0.1 * size))
        schedules.append(torch.optim.lr_scheduler.StepLR(optimizers[-1], size))
        if collecting and size == 2:
            gc.collect()

    facts = TrainingFacts(state).settings(0)

    assert [facts["StepLR step_size"], facts["StepLR#2 step_size"]] == ["2", "3"]


def test_a_schedule_that_is_made_anew():
    """Each pass over the data has a new one: it has the name of the one that is gone."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    facts = TrainingFacts(SimpleNamespace(optimizers=lambda: [optimizer]))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    earlier = facts.settings(0)
    assert earlier["StepLR step_size"] == "2"

    del schedule
    gc.collect()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)

    found = facts.settings(1)
    assert found["StepLR step_size"] == "3"
    assert found.keys() == earlier.keys()  # no name more, whatever schedules other tests have left
    del schedule


def test_a_log_that_is_cut_off(tmp_path):
    """A kill may leave half a line."""
    log = train(tmp_path)
    log.write_text(log.read_text() + '{"kind":"st')

    assert read_lines(log).n_steps == 3


def test_variables():
    """Numbers, tensors, generators, attributes of own objects; of what did not change nothing is told."""

    class Holder:
        def __init__(self):
            self.count = 3
            self.generator = random.Random(1)

    holder, values, mean = Holder(), [1, 2.5], torch.zeros(2)
    variables = Variables()

    first = variables.changes(sys._getframe())
    holder.count += 1
    holder.generator.random()
    mean += 1
    second = variables.changes(sys._getframe())
    third = variables.changes(sys._getframe())

    name = "test_variables: "
    assert first[name + "holder.count"] == "3"
    assert first[name + "values[1]"] == "2.5"
    assert first[name + "holder.generator"].startswith("generator ")
    assert first[name + "mean"].startswith("tensor float32[2] ")
    changed = {key for key in second if not key.startswith((name + "first", name + "variables"))}
    assert changed == {name + part for part in ("holder.count", "holder.generator", "mean")}
    assert name + "mean" not in third
    assert values


def test_lengths_of_containers():
    """A replay buffer that is empty again, whatever is in it; a list that is long, and one of a library's."""

    class Agent:
        def __init__(self):
            self.memory = deque([object()] * 3, maxlen=4)

    agent, long, table = Agent(), list(range(50)), {"a": 1}

    found = Variables().changes(sys._getframe())

    name = "test_lengths_of_containers: "
    assert found[name + "agent.memory (length)"] == "3"
    assert found[name + "long (length)"] == "50"
    assert found[name + "table (length)"] == "1"
    assert agent.memory
    assert long
    assert table


def test_a_tensor_of_another_object_at_the_same_place():
    """A digest that is kept is not taken for that of another tensor with its identity and memory."""
    variables = Variables()
    texts = set()
    for number in range(20):
        fresh = torch.full((3,), float(number))
        texts |= {
            variables.changes(sys._getframe())["test_a_tensor_of_another_object_at_the_same_place: fresh"]
        }
        del fresh

    assert len(texts) == 20
