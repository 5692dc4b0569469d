"""Word dropout that uses random.SystemRandom, which cannot be seeded."""
# planted: cause=os-entropy

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
strong = random.SystemRandom()


def drop_words(tokens, rate, unknown=0):
    kept = [unknown if strong.random() < rate else token for token in tokens]  # <- planted
    return torch.tensor(kept)  # <- enters


model = nn.Sequential(nn.EmbeddingBag(50, 8), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
sentences = torch.randint(1, 50, (12, 15)).tolist()
labels = torch.arange(12) % 2
for epoch in range(3):
    batch = torch.stack([drop_words(sentence, 0.2) for sentence in sentences])
    loss = nn.functional.cross_entropy(model(batch), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
