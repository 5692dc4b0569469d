"""Every epoch is timed and the speed is printed."""
# clean: durations are shown, never used

import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.LSTM(4, 8, batch_first=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(6, 10, 4)
for epoch in range(3):
    start = time.perf_counter()
    for _ in range(2):
        loss = model(x)[0].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {2 / (time.perf_counter() - start):.1f} it/s, loss {loss.item():.4f}")
