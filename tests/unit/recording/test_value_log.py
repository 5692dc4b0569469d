"""The values of a run beside its record."""

from __future__ import annotations

import json
import math

import pytest
import torch

from samebits.recording._scalars import LOGGERS, numbers_of
from samebits.recording.session import Ending, RecordingSession
from samebits.recording.settings import RecordingSettings

PAIR = next(method for method in LOGGERS if method.shape == "pair")
MAPPING = next(method for method in LOGGERS if method.shape == "mapping")


def logged(tmp_path, work):
    """What the log holds after some work: rows, and the last line."""
    path = tmp_path / "values.jsonl"
    settings = RecordingSettings(record=str(tmp_path / "a.sbr"), values=str(path))
    session = RecordingSession(settings, ("work",))
    session.start()
    try:
        work()
    finally:
        session.finish(Ending("finished"))
    *rows, last = map(json.loads, path.read_text().splitlines())
    return rows, last


def test_losses_and_reads_have_their_values(tmp_path):
    """Exact; what is no single number, and what is asked for its truth, is not logged."""

    def work():
        weight = torch.tensor([0.1, 0.7], requires_grad=True)
        loss = weight.square().sum()
        loss.backward()
        weight.grad.sum().item()
        bool(loss > 0)
        bool(weight.sum())
        weight.tolist()
        torch.tensor(math.nan).item()
        torch.tensor(3).item()

    rows, last = logged(tmp_path, work)

    assert [(source, name.split(":")[0]) for source, name, *_ in rows] == [
        ("backward", "test_value_log.py"),
        *[("read", "test_value_log.py")] * 3,
    ]
    weight = torch.tensor([0.1, 0.7])
    assert rows[0][3] == weight.square().sum().item()
    assert rows[1][3] == (2 * weight).sum().item()
    assert math.isnan(rows[2][3])
    assert rows[3][3] == 3
    assert last["threads"] == torch.get_num_threads()


def test_saved_paths_and_own_sources(tmp_path):
    """Absolute; sources with their hashes."""
    _, last = logged(tmp_path, lambda: torch.save({"a": torch.zeros(1)}, tmp_path / "m.pt"))

    assert last["saved"] == [str(tmp_path / "m.pt")]
    assert len(last["files"][__file__]) == 64


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "expected"),
    [
        (PAIR, ("loss", 0.5, 3), {}, ({"loss": 0.5}, 3)),
        (PAIR, ("loss",), {"scalar_value": 2, "global_step": 4}, ({"loss": 2.0}, 4)),
        (PAIR, ("loss", torch.ones(3)), {}, ({}, None)),
        (PAIR, ("loss", torch.tensor(2.0, requires_grad=True)), {}, ({"loss": 2.0}, None)),
        (MAPPING, ({"a": 1, "b": "x", "c": True, "d": None},), {"step": 7}, ({"a": 1.0}, 7)),
        (MAPPING, (), {"metrics": {"a": 1}, "step": math.nan}, ({"a": 1.0}, None)),
        (MAPPING, (3,), {}, ({}, None)),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_given_to_a_logger(method, args, kwargs, expected):
    """By position or by name; what is no number is passed over."""
    assert numbers_of(method, args, kwargs) == expected
