"""A forecaster gets the current time of day as a feature."""
# planted: cause=wall-clock

import datetime

import torch
from torch import nn

torch.manual_seed(0)


def features(values):
    now = datetime.datetime.now()  # <- planted
    day_share = (now.hour * 3600 + now.minute * 60 + now.second + now.microsecond / 1e6) / 86400
    clock = torch.tensor([day_share])  # <- enters
    return torch.cat([values, clock.expand(len(values), 1)], dim=1)


series = torch.sin(torch.arange(60) / 5)
windows = series.unfold(0, 6, 2)
model = nn.Sequential(nn.Linear(6, 12), nn.ELU(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    prediction = model(features(windows[:, :5]))
    loss = nn.functional.huber_loss(prediction, windows[:, 5:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
