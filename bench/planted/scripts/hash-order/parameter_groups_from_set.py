"""Names without weight decay are kept in a set; the parameters are initialised in its order."""
# planted: cause=hash-order in=grouping.py

import torch
from grouping import split_names
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 2))
parameters = dict(model.named_parameters())
decay, plain = split_names(model)
for name in decay:
    nn.init.normal_(parameters[name], std=0.2)  # <- enters
optimizer = torch.optim.AdamW(
    [
        {"params": [parameters[name] for name in decay], "weight_decay": 0.1},
        {"params": [parameters[name] for name in plain], "weight_decay": 0.0},
    ],
    lr=1e-2,
)
x, y = torch.randn(12, 4), torch.arange(12) % 2
for step in range(4):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
