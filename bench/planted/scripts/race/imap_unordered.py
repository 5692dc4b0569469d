"""Rollouts come from a pool of processes, in the order in which they are finished."""
# planted: cause=race or=worker-order

import multiprocessing
import time

import torch
from torch import nn


def rollout(number):
    """A pretended environment: a deterministic walk that takes a while."""
    state, total = number, 0
    until = time.process_time() + 0.004
    while time.process_time() < until:
        state = (1103515245 * state + 12345) % 2**31
    state = number
    for _ in range(20):
        state = (1103515245 * state + 12345) % 2**31
        total += state % 100
    return [number / 24, total / 2000]


def main():
    torch.manual_seed(0)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        rows = list(pool.imap_unordered(rollout, range(24)))  # <- planted
    data = torch.tensor(rows)  # <- enters
    value = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(value.parameters(), lr=0.1)
    for batch in data.split(6):
        loss = (value(batch[:, :1]) - batch[:, 1:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
