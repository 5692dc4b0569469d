"""Token ids as int32 and a batch of one."""

import torch
from pair_tools import own_names, weights

tap = own_names(ids="input_ids", mean="pooled", scores="logits")
w = weights(table=(9, 6), out=(6, 2))


def request(text):
    """Answer one request."""
    ids = tap("ids", torch.tensor([text], dtype=torch.int32))
    pooled = tap("mean", torch.nn.functional.embedding(ids, w["table"]).mean(1))
    return tap("scores", (pooled[0] @ w["out"])[None])


for tokens in ([1, 2, 8], [4, 0, 3]):
    request(tokens)
