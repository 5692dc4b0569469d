"""A GAN whose author reseeds before each epoch "so that the epochs see different noise"."""
# planted: cause=unseeded-torch

import torch
from torch import nn

torch.manual_seed(7)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
bce = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
real_data = torch.randn(48, 2) * 0.5 + 1

for epoch in range(3):
    if epoch > 0:
        torch.seed()  # <- planted
    for real in real_data.split(16):
        fake = generator(torch.randn(16, 4))  # <- enters
        critic_loss = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()

        generator_loss = bce(critic(fake), ones)
        generator_optimizer.zero_grad()
        generator_loss.backward()
        generator_optimizer.step()
    print(f"epoch {epoch} critic {critic_loss.item():.3f} generator {generator_loss.item():.3f}")
