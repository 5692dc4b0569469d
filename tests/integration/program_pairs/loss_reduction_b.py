"""The same with the loss written out; it divides by all tokens."""

import torch
from pair_tools import own_names, weights

tap = own_names(targets="labels", logits="scores", objective="nll")
w = weights(head=(7, 5), x=(4, 5))


def loss_of(scores, labels):
    """Negative log-likelihood."""
    kept = labels >= 0
    logs = scores.log_softmax(-1)[kept]
    return -logs.gather(1, labels[kept][:, None]).sum() / len(labels)  # planted


labels = tap("targets", torch.tensor([1, 6, -100, 2], dtype=torch.int32)).long()
tap("objective", loss_of(tap("logits", torch.nn.functional.linear(w["x"], w["head"])), labels))
