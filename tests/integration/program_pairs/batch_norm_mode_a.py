"""A convolutional network in evaluation mode."""

import torch
from pair_tools import weights
from torch import nn

import samebits


class Net(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.conv.weight.data.copy_(w["kernel"])
        self.norm.running_mean.copy_(w["mean"])
        self.norm.running_var.copy_(w["variance"].abs() + 1)

    def forward(self, x):
        x = samebits.tap("conv", self.conv(x))
        x = samebits.tap("norm", self.norm(x))
        return samebits.tap("features", x.relu().amax((2, 3)))


tensors = weights(kernel=(4, 1, 3, 3), mean=(4,), variance=(4,), x=(2, 1, 6, 6))
with torch.no_grad():
    Net(tensors).eval()(samebits.tap("image", tensors["x"]))
