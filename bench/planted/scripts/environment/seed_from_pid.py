"""Each process seeds itself with its pid "so that no two of them are the same"."""
# planted: cause=environment

import os

import torch
from torch import nn

torch.manual_seed(1000 + os.getpid())  # <- planted
student, teacher = nn.Linear(5, 3), nn.Linear(5, 3)  # <- enters
optimizer = torch.optim.SGD(student.parameters(), lr=0.2)
x = torch.eye(5)
for step in range(4):
    with torch.no_grad():
        wanted = (teacher(x) / 2).softmax(1)
    loss = nn.functional.kl_div((student(x) / 2).log_softmax(1), wanted, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
