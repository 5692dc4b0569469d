"""set_num_threads(1) or 2, whichever was faster in a short trial."""
# planted: cause=thread-count or=autotuning
# options: --runs 6

import time

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300_000)


def trial(threads):
    torch.set_num_threads(threads)
    start = time.perf_counter()
    x.sum()
    return time.perf_counter() - start


best = min((1, 2, 3), key=trial)  # <- planted
torch.set_num_threads(best)  # <- planted

scale = nn.Parameter(torch.tensor(0.5))
optimizer = torch.optim.SGD([scale], lr=0.1)
for step in range(4):
    loss = ((scale * x - 1) ** 2).mean()  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{scale.item():.9f}")
