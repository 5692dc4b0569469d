"""Tensors of a replay memory are "deterministically" sorted by id."""
# planted: cause=id-order

import torch
from torch import nn

torch.manual_seed(0)


class Episode:
    def __init__(self, length):
        self.states = torch.randn(length, 4)


episodes = [Episode(length) for length in (3, 5, 4, 6, 2, 7)]
junk = [bytearray(n * 50) for n in range(200)]
del junk[::2]
episodes += [Episode(length) for length in (5, 3, 6)]
ordered = sorted({id(e): e for e in episodes}.items())  # <- planted

policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for _, episode in ordered:
    loss = policy(episode.states).log_softmax(1)[:, 0].mean().neg()  # <- enters
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
