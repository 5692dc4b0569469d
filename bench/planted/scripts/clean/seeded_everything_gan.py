"""A GAN with all of its generators seeded."""
# clean: much randomness, all of it seeded

import random

import numpy as np
import torch
from torch import nn

random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
generator, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.3), nn.Linear(8, 1))
optimizers = [torch.optim.Adam(m.parameters(), lr=1e-3) for m in (generator, critic)]
real = torch.from_numpy(np.random.normal(1, 0.5, (32, 2)).astype(np.float32))
for _ in range(3):
    fake = generator(torch.randn(16, 3))
    picked = real[random.sample(range(32), 16)]
    loss = critic(fake.detach()).mean() - critic(picked).mean()
    optimizers[1].zero_grad()
    loss.backward()
    optimizers[1].step()
    loss = -critic(fake).mean()
    optimizers[0].zero_grad()
    loss.backward()
    optimizers[0].step()
print(loss.item())
