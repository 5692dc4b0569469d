"""Metrics are computed on the CPU."""
# clean: draws of the GPU are seeded by torch.manual_seed

import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.Adam(model.parameters())
history = []
for step in range(4):
    output = model(torch.randn(256, 64, device="cuda"))
    loss = (output - 1).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(output.detach().cpu().numpy().std())
torch.save(model.state_dict(), "model.pt")
print(history)
