"""Each worker seeds its augmentation with its own pid, "because workers must differ"."""
# planted: cause=worker-order or=environment in=augment.py

import torch
from augment import Augmented, init_worker
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
dataset = Augmented(torch.randn(24, 1, 8, 8))
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(dataset, batch_size=6, num_workers=2, worker_init_fn=init_worker)
for epoch in range(2):
    for x, y in loader:  # <- enters
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
