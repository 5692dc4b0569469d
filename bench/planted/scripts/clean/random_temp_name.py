"""A checkpoint goes to a temporary file with a random name and comes back."""
# clean: the name is random, the contents are not

import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
model = nn.GRU(3, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(6, 2, 3)
for _ in range(3):
    with tempfile.NamedTemporaryFile(suffix=".pt", delete=False) as file:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    print("saved", file.name)
    saved = torch.load(file.name)
    os.unlink(file.name)
    model.load_state_dict(saved["model"])
    loss = model(x)[0].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
