"""The service: it forgets to switch to evaluation."""

import torch
import torch.nn.functional as F
from pair_tools import own_names, weights

tap = own_names(ids="tokens", embedded="wte", dropped="drop", hidden="h", scores="logits")
torch.manual_seed(3)


class Service:
    """Answers requests."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.training = True  # planted

    def answer(self, ids):
        """Scores of the classes."""
        x = tap("embedded", self.tensors["table"][ids])
        x = tap("dropped", F.dropout(x, 0.2, self.training))
        x = tap("hidden", F.linear(x, self.tensors["first"]).tanh())
        return tap("scores", F.linear(x, self.tensors["second"]))


service = Service(weights(table=(30, 12), first=(12, 12), second=(3, 12)))
service.answer(tap("ids", torch.tensor([[3, 7, 29], [0, 1, 2]])))
