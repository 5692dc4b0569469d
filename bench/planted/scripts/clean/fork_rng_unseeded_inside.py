"""A preview is sampled inside fork_rng from an unseeded state, and thrown away."""
# clean: random values that nobody reads, and a generator that is put back

import torch
from torch import nn

torch.manual_seed(0)
decoder = nn.Linear(2, 6)
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for step in range(4):
    codes = torch.randn(8, 2)
    loss = decoder(codes).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.random.fork_rng(), torch.no_grad():
        torch.seed()
        preview = decoder(torch.randn(1, 2))
print(step, tuple(preview.shape), loss.item())
