"""A copy to pinned memory is read before it is there."""
# planted: cause=race

import torch

torch.manual_seed(0)
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(8192, 512, device="cuda")
pinned = torch.zeros(8192, 512).pin_memory()
for step in range(5):
    result = data
    for _ in range(50):
        result = torch.tanh(model(result))
    pinned.copy_(result.detach(), non_blocking=True)  # <- planted
    scale = float(pinned[-1].sum())  # <- enters
    loss = model(data).square().mean() * (1 + scale)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
