"""The same reader with a collating function of the loader."""

import torch
from pair_tools import own_names, weights
from torch.nn.utils.rnn import pad_sequence

tap = own_names(lengths="n", ids="input_ids", state="h", answer="y")
w = weights(table=(8, 5), inner=(5, 5), out=(5, 3))


def collate(texts):
    """A batch of texts of several lengths."""
    tap("lengths", [len(text) for text in texts])
    return tap(
        "ids", pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
    )  # planted: right


class Reader(torch.nn.Module):
    def forward(self, ids):
        h = torch.zeros(len(ids), 5)
        for column in ids.unbind(1):
            h = tap("state", (torch.nn.functional.embedding(column, w["table"]) + h @ w["inner"]).tanh())
        return tap("answer", h @ w["out"])


Reader()(collate([[3, 1], [4, 1, 5, 2]]))
