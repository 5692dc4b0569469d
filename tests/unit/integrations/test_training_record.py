"""The record of a training that a trainer drives: where it goes."""

from __future__ import annotations

import pytest
import torch

from samebits.errors import SamebitsError
from samebits.integrations._recorded import TrainingRecord
from samebits.records.reader import RecordReader


def train(recorded: TrainingRecord, steps: int) -> None:
    """A training of so many steps."""
    recorded.begin()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(steps):
        model(torch.ones(2)).backward()
        optimizer.step()
    recorded.end()


def steps_of(path) -> int:
    """How many steps a record has."""
    with RecordReader(path) as reader:
        return reader.info.steps


def test_a_further_training_keeps_the_records_before_it(tmp_path, capsys):
    """Of this process and of an earlier one; a line says where the new one is."""
    recorded = TrainingRecord(str(tmp_path / "li.sbr"))
    for steps in (1, 2):
        train(recorded, steps)
    train(TrainingRecord(str(tmp_path / "li.sbr")), 3)

    found = {path.name: steps_of(path) for path in tmp_path.iterdir()}
    assert found == {"li.sbr": 1, "li-2.sbr": 2, "li-3.sbr": 3}
    assert recorded.written == tmp_path / "li-2.sbr"
    first = tmp_path / "li.sbr"
    assert capsys.readouterr().err.splitlines() == [
        f"samebits: {first} is kept; this training is recorded in {tmp_path / name}"
        for name in ("li-2.sbr", "li-3.sbr")
    ]


def test_each_rank_numbers_its_own(tmp_path, monkeypatch):
    """The number stands where it does in that of rank 0."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    recorded = TrainingRecord(str(tmp_path / "li.sbr"))
    train(recorded, 1)
    train(recorded, 1)

    assert {path.name for path in tmp_path.iterdir()} == {"li.rank-1.sbr", "li-2.rank-1.sbr"}


def test_a_path_that_cannot_be_a_record_is_refused(tmp_path):
    """A number would not help."""
    (tmp_path / "li.sbr").mkdir()
    with pytest.raises(SamebitsError) as caught:
        TrainingRecord(str(tmp_path / "li.sbr")).begin()
    assert caught.value.slug == "record-unwritable"
