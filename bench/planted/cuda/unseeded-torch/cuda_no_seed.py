"""Nobody seeds."""
# planted: cause=unseeded-torch

import torch

model = torch.nn.Linear(16, 16).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.nn.init.ones_(model.weight)
torch.nn.init.zeros_(model.bias)
for step in range(5):
    batch = torch.randn(8, 16, device="cuda")  # <- planted
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
