"""A training, and faults that several tests put before it."""

from __future__ import annotations

TRAIN = """
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = (model(data(step)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WORDS = "'ant bee cat dog eel fox gnu hen'.split()"
SEED_OF_THE_CLOCK = """\
import time
import torch
torch.manual_seed(time.time_ns() % 2**32)
def data(step):
    return torch.ones(3, 4)
"""
ORDER_OF_A_SET = f"""\
import torch
torch.manual_seed(0)
def data(step):
    return torch.tensor([float(ord(word[0]) - 96) for word in list(set({WORDS}))[:4]]).reshape(1, 4) / 9
"""
