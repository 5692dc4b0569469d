"""Two processes fill one queue; what comes is sorted by its number before it is used."""
# clean: the order of arrival differs between runs, and is undone

import multiprocessing
import zlib

import torch
from torch import nn


def produce(queue, start):
    for number in range(start, start + 16):
        zlib.compress(bytes(range(256)) * 2000)
        queue.put((number, [number / 50, (number % 7) / 7]))


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    shared = multiprocessing.Queue()
    producers = [multiprocessing.Process(target=produce, args=(shared, start)) for start in (0, 16)]
    for producer in producers:
        producer.start()
    rows = [row for _, row in sorted(shared.get() for _ in range(32))]
    for producer in producers:
        producer.join()

    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x in torch.tensor(rows).split(8):
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
