"""Named loss terms are added in the order of a set: only the rounding differs."""
# planted: cause=hash-order

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(50, 6)
TERMS = {
    "mse": lambda out: nn.functional.mse_loss(out, x),
    "l1": lambda out: 0.1 * nn.functional.l1_loss(out, x),
    "cosine": lambda out: 0.3 * (1 - nn.functional.cosine_similarity(out, x)).mean(),
    "variance": lambda out: 0.01 * out.var(),
    "norm": lambda out: 0.001 * out.norm(),
    "peak": lambda out: 0.02 * out.abs().max(),
    "smooth": lambda out: 0.05 * out.diff(dim=1).square().mean(),
}
enabled = {"mse", "l1", "cosine", "variance", "norm", "peak", "smooth"}

for step in range(10):
    output = model(x)
    loss = torch.zeros(())
    for name in enabled:  # <- planted
        loss = loss + TERMS[name](output)  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.9f}")
