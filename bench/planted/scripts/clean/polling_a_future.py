"""The main thread polls a background computation, a different number of times in each run."""
# clean: waiting takes as long as it takes

import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


def prepare():
    generator = torch.Generator().manual_seed(3)
    return torch.randn(200, 8, generator=generator).cumsum(0).tanh()


torch.manual_seed(0)
polls = 0
with ThreadPoolExecutor(1) as pool:
    job = pool.submit(prepare)
    while not job.done():
        polls += 1
        time.sleep(0.001)
print("polled", polls, "times")
data = job.result()
model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for batch in data.split(50):
    loss = nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
