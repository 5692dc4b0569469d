"""The same on a server that computes one of them in bfloat16."""

import torch
from pair_tools import own_names, weights

tap = own_names(layer0="stem", layer1="body", layer2="head")
w = weights(a=(20, 10), b=(20, 20), c=(5, 20), x=(4, 10))


def layer(x, weight, *, low):
    """A linear layer and a ReLU."""
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        return torch.nn.functional.linear(x, weight).relu()


y = tap("layer0", layer(w["x"], w["a"], low=False))
y = tap("layer1", layer(y, w["b"], low=True))  # planted
tap("layer2", layer(y.float(), w["c"], low=False))
