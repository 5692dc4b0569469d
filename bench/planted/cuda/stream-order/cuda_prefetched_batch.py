"""The next batch is prepared on a stream of its own, and nothing waits for it."""
# planted: cause=stream-order

import torch
from torch import nn

torch.manual_seed(0)
side = torch.cuda.Stream()
model = nn.Linear(512, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def prepare(batch):
    with torch.cuda.stream(side):
        for _ in range(50):
            batch = (batch @ batch.T @ batch).tanh()
        return batch * 2  # <- planted


for step in range(5):
    batch = torch.randn(512, 512, device="cuda")
    torch.cuda.synchronize()
    loss = model(prepare(batch)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
