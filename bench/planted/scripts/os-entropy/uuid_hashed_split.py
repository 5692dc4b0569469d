"""Each sample gets a uuid; the split into training and validation is by the hash of that."""
# planted: cause=os-entropy in=catalogue.py

import torch
from catalogue import Catalogue
from torch import nn

torch.manual_seed(1)
catalogue = Catalogue(torch.randn(40, 4))
train = catalogue.part("train")
model = nn.Linear(4, 4)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for epoch in range(4):
    loss = (model(train) - train.roll(1, dims=1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
