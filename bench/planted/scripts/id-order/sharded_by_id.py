"""Episodes are dealt to three shards by `id(episode) % 3`, each shard has its own critic."""
# planted: cause=id-order

import torch
from torch import nn


class Episode:
    def __init__(self, length):
        self.states = torch.randn(length, 4)


torch.manual_seed(0)
episodes = [Episode(length) for length in (3, 5, 4, 6, 2, 7, 5, 3, 6)]
shards = [[], [], []]
for episode in episodes:
    shards[id(episode) // 4096 % 3].append(episode)  # <- planted

critics = nn.ModuleList(nn.Linear(4, 1) for _ in shards)
optimizer = torch.optim.SGD(critics.parameters(), lr=0.1)
for critic, shard in zip(critics, shards):
    for episode in shard:
        returns = episode.states.sum(1, keepdim=True)  # <- enters
        loss = (critic(episode.states) - returns).square().mean()  # <- enters
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(sum(critic.weight.sum() for critic in critics).item())
