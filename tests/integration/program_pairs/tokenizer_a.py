"""A bag-of-words classifier with its tokenizer."""

import torch
from pair_tools import weights

import samebits

TEXT = "The first run and the second Run"
VOCABULARY = {word: number for number, word in enumerate(["?", "the", "first", "second", "run", "and"])}


def encode(text):
    """Token ids of a text."""
    return torch.tensor([VOCABULARY.get(word, 0) for word in text.lower().split()])


w = weights(table=(6, 8), out=(8, 2))
text = samebits.tap("text", TEXT)
ids = samebits.tap("ids", encode(text))
vectors = samebits.tap("vectors", w["table"][ids])
samebits.tap("logits", vectors.mean(0) @ w["out"])
