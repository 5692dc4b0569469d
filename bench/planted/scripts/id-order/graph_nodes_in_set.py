"""A computation graph of nodes without __hash__: breadth-first search visits a set of them."""
# planted: cause=id-order

import torch
from torch import nn


class Node:
    def __init__(self, name, *parents):
        self.name, self.parents = name, parents
        self.children = set()
        for parent in parents:
            parent.children.add(self)


root = Node("root")
left = [Node(f"left{i}", root) for i in range(4)]
right = [Node(f"right{i}", root, left[i % 4]) for i in range(5)]


def visit(start):
    order, waiting = [], [start]
    while waiting:
        node = waiting.pop(0)
        if node not in order:
            order.append(node)
            waiting.extend(node.children)  # <- planted
    return order


torch.manual_seed(0)
order = visit(root)
cells = nn.ModuleDict({node.name: nn.Linear(4, 4) for node in order})  # <- enters
optimizer = torch.optim.Adam(cells.parameters(), lr=1e-2)
x = torch.randn(6, 4)
for _ in range(3):
    values = {root.name: cells["root"](x)}
    for name in sorted(cells):
        values[name] = cells[name](x).tanh()
    loss = sum(values[name].square().mean() for name in sorted(values))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
