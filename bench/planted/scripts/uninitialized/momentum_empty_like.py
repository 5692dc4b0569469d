"""A hand-written optimizer whose momentum buffer starts as empty_like."""
# planted: cause=uninitialized
# options: --stress

import torch
from torch import nn


class HeavyBall(torch.optim.Optimizer):
    def __init__(self, parameters, lr=0.01, beta=0.9):
        super().__init__(parameters, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["velocity"] = torch.empty_like(parameter)  # <- planted
                state["velocity"].mul_(group["beta"]).add_(parameter.grad)  # <- planted
                parameter.sub_(state["velocity"].nan_to_num().clamp(-9, 9), alpha=group["lr"])


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 2))
optimizer = HeavyBall(model.parameters())
x, y = torch.randn(14, 5), torch.arange(14) % 2
for _ in range(4):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
