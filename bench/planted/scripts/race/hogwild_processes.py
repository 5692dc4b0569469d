"""Hogwild: processes update one model, which lies in shared memory, without a lock."""
# planted: cause=race

import torch
import torch.multiprocessing as mp
from torch import nn


def work(model, rank):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    x = torch.randn(64, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(300):
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    mp.set_start_method("fork")
    torch.manual_seed(0)
    shared = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    shared.share_memory()  # <- planted
    ranks = [mp.Process(target=work, args=(shared, rank)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    print(shared(torch.ones(4, 16)).sum().item())  # <- enters
