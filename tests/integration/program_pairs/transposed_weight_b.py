"""The same perceptron as functions; the converter of the weights turns one over."""

import torch
import torch.nn.functional as F
from pair_tools import own_names, weights

tap = own_names(input="x", weights="w", hidden="h0", second="h1", logits="out")


def convert(stored):
    """From the trainer's layout to the engine's."""
    layers = [[stored["w1"], stored["b1"]], [stored["w2"], stored["b2"]], [stored["w3"], stored["b3"]]]
    layers[1][0] = layers[1][0].t().contiguous()  # planted
    return layers


@torch.inference_mode()
def run(layers, x):
    for name, (weight, bias) in zip(("hidden", "second"), layers[:-1], strict=True):
        x = tap(name, F.linear(x, weight, bias).clamp(min=0))
    return tap("logits", F.linear(x, *layers[-1]))


tensors = weights(w1=(16, 8), b1=(16,), w2=(16, 16), b2=(16,), w3=(4, 16), b3=(4,), x=(5, 8))
network = convert(tensors)
tap("input", tensors["x"])
tap("weights", {"first": network[0][0], "second": network[1][0], "head": network[2][0]})
run(network, tensors["x"])
