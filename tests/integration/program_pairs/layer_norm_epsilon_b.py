"""The block as one function."""

import torch
import torch.nn.functional as F
from pair_tools import own_names, weights

tap = own_names(x="inputs", norm="ln_1", up="c_fc", block="h")
EPSILON = 1e-6  # planted: the module's default is 1e-5

w = weights(up=(24, 12), down=(12, 24), scale=(12,), x=(6, 12))
zeros = {"up": torch.zeros(24), "down": torch.zeros(12)}


def block(x):
    """One block, before the next norm."""
    y = tap("norm", F.layer_norm(x, (12,), w["scale"], torch.zeros(12), EPSILON))
    y = tap("up", F.linear(y, w["up"], zeros["up"]))
    return tap("block", x + F.linear(F.silu(y), w["down"], zeros["down"]))


block(tap("x", w["x"]))
