"""A trainer written in one loop."""

import torch
from pair_tools import weights

w = weights(first=(5, 3), bias=(5,), second=(1, 5), x=(8, 3), y=(8, 1))
net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1, bias=False))
net[0].weight.data.copy_(w["first"])
net[0].bias.data.copy_(w["bias"])
net[2].weight.data.copy_(w["second"])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    optimizer.zero_grad()
    loss = (net(w["x"]) - w["y"]).square().mean()
    loss.backward()
    optimizer.step()
