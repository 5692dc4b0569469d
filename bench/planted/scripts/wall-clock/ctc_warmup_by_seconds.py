"""A speech recogniser whose loss is scaled by how long its first batch took."""
# planted: cause=wall-clock

import time

import torch
from torch import nn

began = time.perf_counter()
torch.manual_seed(0)
lstm, out = nn.LSTM(6, 12), nn.Linear(12, 9)
parameters = [*lstm.parameters(), *out.parameters()]
optimizer = torch.optim.SGD(parameters, lr=1e-2)
sound, words = torch.randn(20, 4, 6), torch.randint(1, 9, (4, 5))
lengths = torch.full((4,), 20), torch.full((4,), 5)
for step in range(5):
    states, _ = lstm(sound)
    if step == 0:
        scale = 1.0 / (1.0 + time.perf_counter() - began)  # <- planted
    loss = nn.functional.ctc_loss(out(states).log_softmax(2), words, *lengths)
    optimizer.zero_grad()
    (loss * scale).backward()  # <- enters
    optimizer.step()
print("final", loss.item())
