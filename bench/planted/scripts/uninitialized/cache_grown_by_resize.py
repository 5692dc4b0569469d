"""A key-value cache grows with resize_, and attention reads one position too far."""
# planted: cause=uninitialized
# options: --stress

import torch
from torch import nn

torch.manual_seed(0)


class Cache:
    def __init__(self, width):
        self.rows, self.used = torch.zeros(2, width), 0

    def append(self, row):
        if self.used + 1 >= len(self.rows):
            self.rows.resize_(2 * len(self.rows), self.rows.shape[1])  # <- planted
        self.rows[self.used] = row
        self.used += 1
        return self.rows[: self.used + 1]  # <- planted


model, cache = nn.Linear(6, 6), Cache(6)
token = torch.ones(6)
with torch.no_grad():
    for _ in range(9):
        keys = cache.append(model(token)).nan_to_num().clamp(-2, 2)  # <- enters
        token = (keys @ token).softmax(0) @ keys + token
print(token.norm().item())
