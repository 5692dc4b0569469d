"""Samples come from a database with ORDER BY RANDOM(): the generator is SQLite's own."""
# planted: cause=unknown or=os-entropy

import sqlite3

import torch
from torch import nn

torch.manual_seed(0)
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE points (x REAL, y REAL)")
database.executemany("INSERT INTO points VALUES (?, ?)", [(i / 40, (i / 40) ** 2) for i in range(40)])

model = nn.Sequential(nn.Linear(1, 8), nn.Mish(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    rows = database.execute("SELECT x, y FROM points ORDER BY RANDOM() LIMIT 16").fetchall()  # <- planted
    batch = torch.tensor(rows)  # <- enters
    loss = (model(batch[:, :1]) - batch[:, 1:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
