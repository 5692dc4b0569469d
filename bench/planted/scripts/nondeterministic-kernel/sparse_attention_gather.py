"""Block-sparse attention picks its keys by advanced indexing; their gradient is a racing accumulation."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn


class PickedAttention(nn.Module):
    """Each query looks at 16 keys that were picked beforehand."""

    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x, picks):
        q, k, v = self.query(x), self.key(x), self.value(x)
        weights = torch.einsum("nd,nkd->nk", q, k[picks]).softmax(1)  # <- planted
        return torch.einsum("nk,nkd->nd", weights, v[picks])  # <- planted


torch.manual_seed(0)
x = torch.randn(400, 16)
picks = torch.randint(0, 400, (400, 16)) // 20
model = PickedAttention(16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    loss = nn.functional.mse_loss(model(x, picks), x.roll(1, 0))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
