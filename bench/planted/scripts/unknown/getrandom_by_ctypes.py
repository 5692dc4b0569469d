"""Noise from the C library, called directly: no Python generator is involved."""
# planted: cause=unknown or=os-entropy in=cnoise.py

import torch
from cnoise import fill
from torch import nn


class NoisyLinear(nn.Linear):
    """Factorised noise on the weights, as in Rainbow."""

    def forward(self, x):
        rows, columns = self.weight.shape
        noise = torch.tensor(fill(rows + columns)) / 255 - 0.5  # <- enters
        return nn.functional.linear(x, self.weight + 0.1 * torch.outer(noise[:rows], noise[rows:]), self.bias)


torch.manual_seed(0)
q = nn.Sequential(NoisyLinear(4, 10), nn.ReLU(), nn.Linear(10, 2))
optimizer = torch.optim.Adam(q.parameters(), lr=1e-2)
states, returns = torch.randn(20, 4), torch.randn(20)
for _ in range(4):
    loss = nn.functional.smooth_l1_loss(q(states).max(1).values, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
