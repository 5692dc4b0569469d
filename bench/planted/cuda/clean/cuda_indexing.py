"""Advanced indexing, sort, topk and median of the GPU."""
# clean: the gradient of advanced indexing sorts before it adds

import torch

torch.manual_seed(0)
model = torch.nn.Linear(16, 16).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
index = torch.randint(16, (5000,), device="cuda")
for step in range(4):
    rows = model.weight[index]
    best = rows.sum(1).sort().values[:100] + rows.topk(3).values.sum(1)[:100]
    loss = best.square().mean() + rows.median() + rows.std()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
