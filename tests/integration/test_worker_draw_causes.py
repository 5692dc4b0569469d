"""What workers of DataLoaders draw explains a difference, without any trial."""

from __future__ import annotations

from cli_support import judged, samebits, write


def test_a_generator_made_in_a_worker_is_named_without_any_trial(tmp_path):
    script = """
        import numpy as np
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Noisy(Dataset):
            rng = None

            def __len__(self):
                return 8

            def __getitem__(self, index):
                if self.rng is None:
                    self.rng = np.random.default_rng()
                return torch.tensor([float(index), self.rng.normal()])

        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for batch in DataLoader(Noisy(), batch_size=4, num_workers=2):
            optimizer.zero_grad()
            model(batch.float()).mean().backward()
            optimizer.step()
    """
    write(tmp_path, "train.py", script)
    found = judged(samebits("verify", "--json", "--no-interventions", "train.py", cwd=tmp_path))["findings"]
    assert (found[0]["cause"], found[0]["site"]["line"]) == ("unseeded-numpy", 13)


def test_workers_of_a_loader_on_an_unseeded_generator_are_laid_to_torch(tmp_path):
    script = """
        import numpy as np
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Noisy(Dataset):
            def __len__(self):
                return 8

            def __getitem__(self, index):
                return torch.tensor([float(index), np.random.rand()])

        model = torch.nn.Linear(2, 1)
        torch.nn.init.ones_(model.weight), torch.nn.init.zeros_(model.bias)
        torch.seed()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for batch in DataLoader(Noisy(), batch_size=4, num_workers=2):
            optimizer.zero_grad()
            model(batch.float()).mean().backward()
            optimizer.step()
    """
    write(tmp_path, "train.py", script)
    found = judged(samebits("verify", "--json", "--no-interventions", "train.py", cwd=tmp_path))["findings"]
    assert found[0]["cause"] == "unseeded-torch"
