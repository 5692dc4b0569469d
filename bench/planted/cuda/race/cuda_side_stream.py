"""A batch is made on another stream, and nobody waits for it."""
# planted: cause=race

import torch

torch.manual_seed(0)
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
side = torch.cuda.Stream()
large = torch.randn(4096, 4096, device="cuda")
batch = torch.zeros(4096, 1024, device="cuda")
for step in range(5):
    with torch.cuda.stream(side):
        for _ in range(20):
            large = torch.tanh(large @ large)
        batch.copy_(large[:, :1024] * (step + 1))  # <- planted
    loss = model(batch).square().mean()  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
