"""Threads fold their results into a shared running mean: read, modify, write, no lock."""
# planted: cause=race
# options: --runs 3

import threading

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
statistics = {"mean": torch.zeros(4), "count": 0}


def evaluate(chunks):
    for chunk in chunks:
        with torch.no_grad():
            output = model(chunk).mean(0)
        count, mean = statistics["count"], statistics["mean"]
        updated = mean + (output - mean) / (count + 1)  # <- planted
        statistics["mean"], statistics["count"] = updated, count + 1  # <- planted


data = torch.randn(4, 50, 32, 8)
threads = [threading.Thread(target=evaluate, args=(chunks,)) for chunks in data]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = (model(data[0, 0]) - statistics["mean"]).square().mean()
loss.backward()
optimizer.step()
print(loss.item())
