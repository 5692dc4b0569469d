"""Two processes prepare samples and put them into one queue; the trainer takes them as they come."""
# planted: cause=race or=worker-order

import multiprocessing
import zlib

import torch
from torch import nn


def produce(queue, start):
    for number in range(start, start + 24):
        zlib.compress(bytes(range(256)) * 3000)
        queue.put([number / 50, (number % 7) / 7])
    queue.put(None)


def train(queue, n_producers):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rows, ended = [], 0
    while ended < n_producers:
        row = queue.get()  # <- planted
        if row is None:
            ended += 1
            continue
        rows.append(row)
        if len(rows) == 4:
            x = torch.tensor(rows)  # <- enters
            rows = []
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    shared = multiprocessing.Queue()
    producers = [multiprocessing.Process(target=produce, args=(shared, start)) for start in (0, 100)]
    for producer in producers:
        producer.start()
    train(shared, len(producers))
    for producer in producers:
        producer.join()
