"""An encoder with dropout, with checkpoints of activations."""
# clean: dropout draws the same when a checkpoint is computed again

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layers = nn.ModuleList([nn.TransformerEncoderLayer(128, 4, 256, batch_first=True) for _ in range(3)]).cuda()
optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3, foreach=True)
data = torch.randn(16, 64, 128, device="cuda")
for step in range(4):
    hidden = data
    for layer in layers:
        hidden = checkpoint(layer, hidden, use_reentrant=False)
    loss = hidden.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
