"""numpy's SeedSequence without an argument gathers entropy from the system; its children seed torch."""
# planted: cause=os-entropy or=unseeded-numpy

import numpy as np
import torch
from torch import nn

seeds = np.random.SeedSequence()  # <- planted
weights_seed, data_seed = (int(child.generate_state(1)[0]) for child in seeds.spawn(2))

data_generator = torch.Generator().manual_seed(data_seed)  # <- enters
torch.manual_seed(weights_seed)  # <- enters


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(10, 3)  # <- enters
        self.up = nn.Linear(3, 10)

    def forward(self, x):
        return self.up(torch.tanh(self.down(x)))


model = Autoencoder()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)
x = torch.rand(16, 10, generator=data_generator)
for _ in range(3):
    loss = nn.functional.l1_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
