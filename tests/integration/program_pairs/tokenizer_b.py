"""The same classifier behind another tokenizer, which gives a list of ids."""

import torch
from pair_tools import own_names, weights

tap = own_names(text="prompt", ids="input_ids", vectors="wte", logits="out")


class Tokenizer:
    """Splits at spaces."""

    def __init__(self, words):
        self.table = {word: at for at, word in enumerate(words)}

    def __call__(self, text):
        return [self.table.get(word, 0) for word in text.split(" ")]  # planted: capitals are not folded


tokens = tap(
    "ids",
    Tokenizer(["?", "the", "first", "second", "run", "and"])(tap("text", "The first run and the second Run")),
)
w = weights(table=(6, 8), out=(8, 2))
embedded = tap("vectors", torch.nn.functional.embedding(torch.tensor(tokens), w["table"]))
tap("logits", embedded.mean(dim=0) @ w["out"])
