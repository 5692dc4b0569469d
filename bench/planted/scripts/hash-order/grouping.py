"""Which parameters get weight decay (the recipe that many GPT code bases share)."""

from torch import nn


def split_names(model):
    """Names of matrices, and names of biases and norms."""
    decay, plain = set(), set()
    for module_name, module in model.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            full = f"{module_name}.{name}"
            (decay if isinstance(module, nn.Linear) and name == "weight" else plain).add(full)
    return list(decay), list(plain)  # <- planted
