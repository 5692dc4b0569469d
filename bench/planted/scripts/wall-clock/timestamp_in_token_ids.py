"""The prompt of a language model holds the date and time, character by character."""
# planted: cause=wall-clock

import time

import torch
from torch import nn

torch.manual_seed(0)
ALPHABET = {character: i for i, character in enumerate("0123456789:.- logentry")}


def encode(text):
    return torch.tensor([ALPHABET[character] for character in text])  # <- enters


class TinyGPT(nn.Module):
    def __init__(self, width=16, length=40):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(len(ALPHABET), width), nn.Embedding(length, width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, len(ALPHABET))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return self.head(x)


model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    line = f"log entry {time.time():.6f}"  # <- planted
    tokens = encode(line)[None]
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits[0], tokens[0, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
