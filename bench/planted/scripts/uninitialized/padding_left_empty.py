"""A collate function makes room with new_empty and fills only as far as each sequence goes."""
# planted: cause=uninitialized in=padding.py
# options: --stress

import torch
from padding import collate
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
sequences = [torch.randn(length) for length in (3, 7, 5, 2, 6, 4, 7, 3)]
encoder, head = nn.Linear(7, 6), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.01)
for padded, lengths in DataLoader(sequences, batch_size=4, collate_fn=collate):
    hidden = encoder(padded.nan_to_num().clamp(-3, 3)).tanh()  # <- enters
    loss = (head(hidden)[:, 0] - lengths).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
