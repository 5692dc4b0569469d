"""Captions are made unique with `set`, then cut to the first few: which ones survive is up to the hash."""
# planted: cause=hash-order

import torch
from torch import nn

torch.manual_seed(0)
CAPTIONS = [
    f"{animal} {verb}" for animal in ("cat", "dog", "owl", "bee") for verb in ("sleeps", "runs", "eats")
]


def encode(caption, length=12):
    codes = [ord(character) - 96 if character != " " else 0 for character in caption]
    return (codes + [0] * length)[:length]


kept = list(set(CAPTIONS * 2))[:6]  # <- planted
tokens = torch.tensor([encode(caption) for caption in kept])  # <- enters
embed = nn.Embedding(27, 8)
text, image = nn.GRU(8, 8, batch_first=True), nn.Linear(5, 8)
pictures = torch.randn(6, 5)
optimizer = torch.optim.Adam([*embed.parameters(), *text.parameters(), *image.parameters()], lr=1e-2)
for step in range(4):
    left = nn.functional.normalize(text(embed(tokens))[1][0], dim=1)
    right = nn.functional.normalize(image(pictures), dim=1)
    loss = nn.functional.cross_entropy(left @ right.T / 0.1, torch.arange(6))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
