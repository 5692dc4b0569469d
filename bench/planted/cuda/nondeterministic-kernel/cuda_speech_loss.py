"""A recogniser of speech trains with CTC."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
sound = torch.randn(200, 16, 40, device="cuda")
words = torch.randint(1, 30, (16, 40), device="cuda")
model = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 30)).cuda()
lengths, sizes = torch.full((16,), 200), torch.full((16,), 40)


def compute():
    scores = model(sound).log_softmax(2)
    return functional.ctc_loss(scores, words, lengths, sizes)  # <- planted


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = compute()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
