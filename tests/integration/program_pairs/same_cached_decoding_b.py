"""The same token by token, with a cache."""

import torch
from pair_tools import own_names, weights

tap = own_names(context="attn")
w = weights(x=(6, 8), q=(8, 8), k=(8, 8), v=(8, 8))
cache = []
for token in w["x"]:
    cache.append((token @ w["k"], token @ w["v"]))
    keys, values = (torch.stack(part) for part in zip(*cache, strict=True))
    tap("context", torch.softmax(keys @ (token @ w["q"]), 0) @ values)
