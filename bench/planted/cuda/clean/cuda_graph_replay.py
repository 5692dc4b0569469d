"""Each step is a replay of a captured graph."""
# clean: a replay runs the same kernels on the same memory

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
data, labels = torch.randn(128, 64, device="cuda"), torch.randint(10, (128,), device="cuda")


def one_step():
    optimizer.zero_grad(set_to_none=False)
    loss = nn.functional.cross_entropy(model(data), labels)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        one_step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = one_step()
for step in range(5):
    graph.replay()
    print(loss.item())
