"""A logger thread wakes up by the clock and writes what the trainer last told it."""
# clean: a thread that only reads plain numbers for the log

import queue
import threading

import torch
from torch import nn

messages = queue.Queue()


def log():
    while (message := messages.get()) is not None:
        print("log:", message)


writer = threading.Thread(target=log)
writer.start()
torch.manual_seed(0)
model = nn.RNN(3, 4, batch_first=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(5, 6, 3)
for step in range(4):
    loss = model(x)[0].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    messages.put((step, loss.item()))
messages.put(None)
writer.join()
