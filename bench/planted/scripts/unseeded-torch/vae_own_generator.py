"""A VAE that samples its noise from a generator of its own, which was given a fresh seed."""
# planted: cause=unseeded-torch

import torch
from torch import nn

torch.manual_seed(0)
noise_generator = torch.Generator()
noise_generator.seed()  # <- planted


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(12, 2 * 4)
        self.decode = nn.Linear(4, 12)

    def forward(self, x):
        mean, log_variance = self.encode(x).chunk(2, dim=1)
        noise = torch.randn(mean.shape, generator=noise_generator)  # <- enters
        latent = mean + noise * (0.5 * log_variance).exp()
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()
        return self.decode(latent), divergence


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = torch.rand(32, 12)
for step in range(5):
    output, divergence = model(data)
    loss = nn.functional.mse_loss(output, data) + 0.01 * divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.5f}")
