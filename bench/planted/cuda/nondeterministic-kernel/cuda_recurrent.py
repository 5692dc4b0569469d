"""An LSTM of cuDNN with dropout."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
series = torch.randn(64, 50, 32, device="cuda")
model = nn.LSTM(32, 128, 2, dropout=0.2, batch_first=True).cuda()


def compute():
    return model(series)[0].square().mean()  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
