"""Greedy decoding without a cache: all positions are computed again for each token."""

from pair_tools import weights

import samebits

w = weights(table=(11, 8), q=(8, 8), k=(8, 8), v=(8, 8), out=(8, 11))
ids = [1, 4, 2]
for _ in range(3):
    x = w["table"][ids]
    query, key, value = (x @ w[name] for name in "qkv")
    samebits.tap("query", query[-1:])
    scores = samebits.tap("scores", query[-1:] @ key.T)
    context = samebits.tap("context", scores.softmax(-1) @ value)
    logits = samebits.tap("logits", context @ w["out"])
    ids.append(int(logits.argmax()))
