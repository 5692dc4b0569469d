"""Three layers in float32."""

import torch
from pair_tools import weights
from torch import nn

import samebits

w = weights(a=(20, 10), b=(20, 20), c=(5, 20), x=(4, 10))
layers = nn.Sequential(
    nn.Linear(10, 20, bias=False), nn.Linear(20, 20, bias=False), nn.Linear(20, 5, bias=False)
)
with torch.no_grad():
    for layer, name in zip(layers, "abc", strict=True):
        layer.weight.copy_(w[name])
    x = w["x"]
    for number, layer in enumerate(layers):
        x = samebits.tap(f"layer{number}", layer(x).relu())
