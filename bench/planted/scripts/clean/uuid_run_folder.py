"""Each run has a uuid and a timestamp, in the name of its folder and in the metrics file."""
# clean: identifiers and times go to file names and a log

import datetime
import json
import os
import tempfile
import uuid

import torch
from torch import nn

torch.manual_seed(0)
run = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
with tempfile.TemporaryDirectory() as root:
    folder = os.path.join(root, run)
    os.makedirs(folder)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(10, 4)
    with open(os.path.join(folder, "metrics.jsonl"), "w", encoding="utf-8") as log:
        for step in range(4):
            loss = (model(x) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.write(json.dumps({"run": run, "pid": os.getpid(), "loss": loss.item()}) + "\n")
    torch.save(model.state_dict(), os.path.join(folder, "last.pt"))
