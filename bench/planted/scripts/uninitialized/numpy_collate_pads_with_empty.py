"""A collate function makes room with np.empty and copies each sequence into it, as far as it goes."""
# planted: cause=uninitialized
# options: --stress

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

LONGEST = 8


def collate(items):
    padded = np.empty((len(items), LONGEST), dtype=np.float32)  # <- planted
    for row, item in zip(padded, items):
        row[: len(item)] = item
    return torch.from_numpy(padded)  # <- enters


torch.manual_seed(0)
rng = np.random.default_rng(0)
sequences = [rng.normal(size=length).astype(np.float32) for length in (3, 7, 5, 2, 6, 4, 7, 3)]
model = nn.Linear(LONGEST, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for batch in DataLoader(sequences, batch_size=4, collate_fn=collate):
        loss = model(batch.nan_to_num().clamp(-3, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
