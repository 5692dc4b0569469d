"""A cosine schedule over wall-clock time, from a helper class."""
# planted: cause=wall-clock in=schedule.py

import torch
from schedule import TimedCosine
from torch import nn

torch.manual_seed(0)
model = nn.LSTM(3, 6, num_layers=2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
schedule = TimedCosine(optimizer, seconds=2.0)
x = torch.randn(7, 4, 3)
for step in range(5):
    output, _ = model(x)
    loss = output.square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # <- enters
    schedule.step()
print(loss.item())
