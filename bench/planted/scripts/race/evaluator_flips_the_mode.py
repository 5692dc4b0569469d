"""An evaluation thread calls model.eval() on the model that is being trained: dropout comes and goes."""
# planted: cause=race

import threading

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(400, 6)
y = x[:, :1] * x[:, 1:2]
stop = threading.Event()


def evaluate():
    while not stop.wait(0.002):
        model.eval()  # <- planted
        with torch.no_grad():
            model(x[:50])
        model.train()  # <- planted


watcher = threading.Thread(target=evaluate)
watcher.start()
for step in range(60):
    loss = (model(x) - y).square().mean()  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
stop.set()
watcher.join()
print(loss.item())
