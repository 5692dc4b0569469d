"""The engine: angles are computed for the positions of the request."""

import torch
from pair_tools import own_names, weights

tap = own_names(x="hidden", query="q", key="k", rotated="qk_rot", scores="qk")
w = weights(q=(16, 8), k=(16, 8), x=(2, 5, 16))


def angles_of(positions, size):
    """Angles for some positions."""
    exponents = torch.arange(0, size, 2).float() / size
    return torch.outer(positions.float(), 1.0 / 10000**exponents)


def rotate(x, angles):
    """Turn pairs of neighbours by their angles."""
    cos, sin = angles.cos(), angles.sin()
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out


hidden = tap("x", w["x"])
q = tap("query", hidden @ w["q"])
k = tap("key", hidden @ w["k"])
positions = torch.arange(1, hidden.shape[1] + 1)  # planted: the first position is 0
q, k = tap("rotated", [rotate(each, angles_of(positions, 8)) for each in (q, k)])
tap("scores", q @ k.transpose(-1, -2))
