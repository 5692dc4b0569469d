"""Attention with a mask, in bfloat16."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
tokens = torch.randn(4, 2048, 512, device="cuda", dtype=torch.bfloat16)
model = nn.Linear(512, 3 * 512, device="cuda", dtype=torch.bfloat16)
mask = torch.rand(2048, 2048, device="cuda") < 0.9


def compute():
    parts = model(tokens).view(4, 2048, 3, 8, 64).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(*parts, attn_mask=mask)  # <- planted
    return mixed.float().square().mean()


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
