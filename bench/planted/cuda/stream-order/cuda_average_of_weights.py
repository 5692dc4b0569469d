"""An average of the weights is kept on a stream of its own while the optimizer changes them."""
# planted: cause=stream-order

import torch
from torch import nn

torch.manual_seed(0)
side = torch.cuda.Stream()
model = nn.Linear(2048, 2048).cuda()
average = model.weight.detach().clone()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = model(torch.randn(64, 2048, device="cuda")).square().mean()
    loss = loss + (model.weight - average).square().sum()
    optimizer.zero_grad()
    loss.backward()
    with torch.cuda.stream(side):
        for _ in range(20):
            average.lerp_(model.weight.detach(), 0.05)  # <- planted
    optimizer.step()
print(loss.item())
