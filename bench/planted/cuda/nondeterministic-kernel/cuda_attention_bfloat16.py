"""Causal attention in bfloat16."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
tokens = torch.randn(4, 4096, 512, device="cuda", dtype=torch.bfloat16)
model = nn.Linear(512, 3 * 512, device="cuda", dtype=torch.bfloat16)


def compute():
    parts = model(tokens).view(4, 4096, 3, 8, 64).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)  # <- planted
    return mixed.float().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
