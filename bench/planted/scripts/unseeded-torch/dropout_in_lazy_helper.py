"""Everything is seeded except that the regulariser, in a helper, restores the generator from `torch.seed`."""
# planted: cause=unseeded-torch in=regularise.py

import torch
from regularise import noisy
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, y = torch.randn(40, 10), torch.randint(0, 3, (40,))

for step in range(6):
    batch = noisy(x) if step >= 2 else x
    loss = nn.functional.cross_entropy(model(batch), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print("final", loss.item())
