"""The block as functions over a dictionary."""

import torch
import torch.nn.functional as F
from pair_tools import own_names, weights

tap = own_names(x="h", norm1="ln_1", attended="h_mid", norm2="ln_2", block="h_out")
w = weights(qkv=(24, 8), out=(8, 8), up=(16, 8), down=(8, 16), x=(2, 4, 8))


def norm(x):
    """Without scale and shift."""
    return F.layer_norm(x, x.shape[-1:], torch.ones(8), torch.zeros(8))


def attention(x):
    """Causal, one head."""
    return F.scaled_dot_product_attention(*torch.split(F.linear(x, w["qkv"]), 8, -1), is_causal=True)


def run(x):
    """One block."""
    x = tap("attended", F.linear(attention(tap("norm1", norm(x))), w["out"]) + x)
    return tap("block", F.linear(F.gelu(F.linear(tap("norm2", norm(x)), w["up"])), w["down"]) + x)


run(tap("x", w["x"]))
