"""A buffer is made with torch.empty and only partly filled."""
# planted: cause=uninitialized or=os-entropy

import os

import torch

torch.manual_seed(0)
torch.cuda.manual_seed(int.from_bytes(os.urandom(2), "little"))  # <- planted
noise = torch.randn(256, 256, device="cuda")  # memory that is free again, with chance in it
del noise
torch.manual_seed(0)
model = torch.nn.Linear(256, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.empty(256, 256, device="cuda")  # <- planted
batch[:128] = 1.0
for step in range(5):
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
