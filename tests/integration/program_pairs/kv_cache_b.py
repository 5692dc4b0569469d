"""The engine: keys and values of earlier tokens are cached."""

import torch
from pair_tools import own_names, weights

tap = own_names(query="q", scores="qk", context="attn", logits="lm_head")


class Engine:
    """One request."""

    def __init__(self, w):
        self.w = w
        self.keys = torch.empty(0, 8)
        self.values = torch.empty(0, 8)

    def step(self, ids):
        """Read some tokens, and return the next one."""
        x = self.w["table"][ids]
        query = tap("query", (x @ self.w["q"])[-1:])
        self.keys = torch.cat([self.keys, x @ self.w["k"]])
        self.values = torch.cat([self.values, x @ self.w["v"]])
        seen = len(self.keys) if len(ids) > 1 else len(self.keys) - 1  # planted: the last token is not seen
        scores = tap("scores", query @ self.keys[:seen].T)
        context = tap("context", scores.softmax(-1) @ self.values[:seen])
        return int(tap("logits", context @ self.w["out"]).argmax())


engine = Engine(weights(table=(11, 8), q=(8, 8), k=(8, 8), v=(8, 8), out=(8, 11)))
token = engine.step([1, 4, 2])
for _ in range(2):
    token = engine.step([token])
