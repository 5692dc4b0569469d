"""The port: its GELU is the approximation by tanh."""

import math

import torch
from pair_tools import own_names, weights

tap = own_names(x="in", up="c_fc", act="gelu_new", down="c_proj")


def gelu(x):
    """Of GPT-2."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))  # planted


tensors = weights(up=(32, 8), down=(8, 32), x=(3, 8))
h = tap("up", torch.matmul(tap("x", tensors["x"]), tensors["up"].t()))
tap("down", torch.matmul(tap("act", gelu(h)), tensors["down"].t()))
