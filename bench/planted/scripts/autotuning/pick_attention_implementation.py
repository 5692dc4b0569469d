"""Two attention implementations are timed and the faster one trains the model."""
# planted: cause=autotuning or=wall-clock in=attention.py
# options: --runs 5

import torch
from attention import choose
from torch import nn

torch.manual_seed(0)
x = torch.randn(4, 12, 16)
mix, out = nn.Linear(16, 48), nn.Linear(16, 16)
attention = choose(x)
optimizer = torch.optim.Adam([*mix.parameters(), *out.parameters()], lr=1e-2)
for step in range(4):
    q, k, v = mix(x).chunk(3, dim=-1)
    loss = nn.functional.mse_loss(out(attention(q, k, v)), x.roll(-1, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.9f}")
