"""A generator of the GPU is seeded by chance."""
# planted: cause=unseeded-torch

import torch

torch.manual_seed(0)
generator = torch.Generator("cuda")
generator.seed()  # <- planted
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.Adam(model.parameters())
batch = torch.randn(32, 64, device="cuda")
for step in range(5):
    keep = torch.rand(32, 64, device="cuda", generator=generator) > 0.1  # <- enters
    loss = model(batch * keep).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
