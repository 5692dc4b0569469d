"""The same, as the port of another library stores it."""

import torch
import torch.nn.functional as F
from pair_tools import own_names, weights

tap = own_names(qkv="c_attn", heads="split", context="attn", y="c_proj")
w = weights(qkv=(36, 12), out=(12, 12), x=(2, 5, 12))


def split(x):
    """Planted: the heads are the last dimension here."""
    return x.reshape(2, 5, 4, 3).permute(0, 3, 1, 2)


projected = tap("qkv", F.linear(w["x"], w["qkv"]))
query, key, value = tap("heads", [split(part) for part in torch.split(projected, 12, dim=-1)])
attended = tap("context", torch.softmax(query @ key.mT, -1) @ value)
tap("y", F.linear(attended.transpose(1, 2).reshape(2, 5, 12), w["out"]))
