"""`samebits.DataLoader` goes on inside of an epoch, dropout too; another dataset is refused."""

import random

import pytest
import torch
from torch import nn

from samebits import DataLoader
from samebits.checkpoint import load, save
from samebits.errors import SamebitsError


class Noisy(torch.utils.data.Dataset):
    """Augments with two generators."""

    def __init__(self, size=20):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.tensor([index, random.random(), torch.rand(1).item()], dtype=torch.float64)


def train(loader, dropout, epochs, last=None, path=None):
    """What training sees; saved after the batch of that number."""
    seen = []
    for _ in range(epochs):
        for batch in loader:
            seen.append((batch.tolist(), dropout(torch.ones(8)).tolist()))
            if len(seen) == last:
                save(path, loader=loader, step=last)
    return seen


@pytest.mark.parametrize("last", [1, 3, 5, 7])
def test_training_goes_on_inside_of_an_epoch(tmp_path, last):
    dropout = nn.Dropout(0.5)
    whole = train(DataLoader(Noisy(), 4, shuffle=True, seed=3), dropout, 2, last, tmp_path / "c")
    for workers in (0, 2):
        again = DataLoader(Noisy(), 4, shuffle=True, seed=3, num_workers=workers)
        torch.rand(5)
        loaded = load(tmp_path / "c", loader=again)
        rest = train(again, dropout, 2 - again.state_dict()["epoch"])
        assert rest == whole[loaded.step :]


def test_a_dataset_of_another_length_is_refused(tmp_path):
    model = nn.Linear(1, 1)
    save(tmp_path / "c", model=model, loader=DataLoader(Noisy(), 4, seed=3))
    before = model.weight.clone()
    with torch.no_grad():
        model.weight += 1
    with pytest.raises(SamebitsError, match=r"20|21"):
        load(tmp_path / "c", model=model, loader=DataLoader(Noisy(21), 4, seed=3))
    assert model.weight == before + 1  # nothing was restored
