"""The port has a matrix of its own for the head, which the file of weights does not fill."""

import torch
from pair_tools import own_names, weights

tap = own_names(embedded="wte", body="h", logits="lm_head", loss="nll")


def build(stored):
    """Parameters by name."""
    torch.manual_seed(9)
    parameters = {"wte": torch.empty(13, 8), "h": torch.empty(8, 8), "lm_head": torch.randn(13, 8) * 0.3}
    parameters["wte"].copy_(stored["table"])
    parameters["h"].copy_(stored["body"])
    return parameters  # planted: `lm_head` stays as it was made


p = build(weights(table=(13, 8), body=(8, 8)))
x = tap("embedded", p["wte"][torch.tensor([2, 5, 12])])
x = tap("body", (x @ p["h"].T).tanh())
tap("loss", tap("logits", x @ p["lm_head"].T).logsumexp(-1).mean())
