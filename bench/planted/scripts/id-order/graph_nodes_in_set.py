"""A graph search keeps its frontier in a set of nodes that have no __hash__ of their own."""
# planted: cause=id-order

import torch
from torch import nn


class Node:
    def __init__(self, row, column):
        self.row, self.column, self.near = row, column, []


SIDE = 24
grid = [[Node(row, column) for column in range(SIDE)] for row in range(SIDE)]
nodes = [node for line in grid for node in line]
for node in nodes:
    for row, column in ((node.row + 1, node.column), (node.row, node.column + 1)):
        if row < SIDE and column < SIDE:
            node.near.append(grid[row][column])
            grid[row][column].near.append(node)


def reachable(start, hops):
    seen = {start}
    for _ in range(hops):
        seen |= {near for node in seen for near in node.near}
    return [(node.row, node.column) for node in seen]  # <- planted


torch.manual_seed(0)
positions = torch.tensor(reachable(grid[0][0], hops=40), dtype=torch.float32) / SIDE  # <- enters
model = nn.GRU(2, 6)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    _, state = model(positions[:60, None])
    loss = (state - 0.5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
