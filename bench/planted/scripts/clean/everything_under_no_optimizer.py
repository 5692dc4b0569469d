"""Plain gradient descent by hand, with `torch.no_grad` updates and buffers that are swapped."""
# clean: no optimizer object, and storage that changes hands each step

import torch

torch.manual_seed(0)
weight = torch.randn(6, 6, requires_grad=True)
spare = torch.empty_like(weight)
x = torch.randn(10, 6)
for step in range(5):
    loss = (x @ weight - x).square().mean()
    (grad,) = torch.autograd.grad(loss, weight)
    with torch.no_grad():
        torch.sub(weight, 0.1 * grad, out=spare)
    weight, spare = spare.requires_grad_(), weight.detach()
print(loss.item())
