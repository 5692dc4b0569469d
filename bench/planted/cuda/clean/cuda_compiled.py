"""A model compiled by inductor."""
# clean: the compiled kernels repeat; nothing is tuned

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 10)).cuda()
compiled = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters())
data, labels = torch.randn(256, 128, device="cuda"), torch.randint(10, (256,), device="cuda")
for step in range(5):
    loss = nn.functional.cross_entropy(compiled(data), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
