"""A message-passing network over named atoms: neighbours come out of a frozenset."""
# planted: cause=hash-order

import torch
from torch import nn

BONDS = ["C1-C2", "C2-O1", "C2-N1", "C1-H1", "C1-H2", "C1-H3", "N1-H4", "N1-C3", "C3-O2", "C3-H5"]
edges = frozenset(tuple(bond.split("-")) for bond in BONDS)
atoms = sorted({atom for edge in edges for atom in edge})
number = {atom: i for i, atom in enumerate(atoms)}


class Messages(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message, self.update = nn.Linear(2 * width, width), nn.GRUCell(width, width)

    def forward(self, h, sources, targets):
        m = self.message(torch.cat([h[sources], h[targets]], dim=1)).relu()
        return self.update(torch.zeros_like(h).index_add(0, targets, m), h)


torch.manual_seed(0)
pairs = [(number[a], number[b]) for a, b in edges]  # <- planted
sources, targets = torch.tensor(pairs).T  # <- enters
layer, readout = Messages(8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*layer.parameters(), *readout.parameters()], lr=1e-2)
h0 = torch.randn(len(atoms), 8)
for epoch in range(4):
    loss = (readout(layer(h0, sources, targets)).sum() - 2.5).square()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
