"""Several trainings share a machine: threads are dealt out by process number."""
# planted: cause=thread-count or=environment in=share.py
# options: --runs 6

import torch
from share import claim_threads
from torch import nn

torch.manual_seed(0)
claim_threads()
signal = torch.randn(400_000)
filter_ = nn.Parameter(torch.tensor([0.2, 0.5, 0.2]))
optimizer = torch.optim.Adam([filter_], lr=1e-2)
for step in range(3):
    smooth = filter_[0] * signal[:-2] + filter_[1] * signal[1:-1] + filter_[2] * signal[2:]
    loss = (smooth - signal[1:-1]).square().sum() / 1e5  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
