"""Evaluation gives each sample a time limit; a slow sample is skipped and not counted."""
# planted: cause=wall-clock
# options: --runs 3

import signal

import torch
from torch import nn

torch.manual_seed(0)


class TooSlow(Exception):
    pass


def give_up(signum, frame):
    raise TooSlow


def solve(model, x, iterations):
    """A fixed-point iteration of an equilibrium model."""
    state = torch.zeros(6)
    done = 0
    try:
        for _ in range(iterations):
            state = torch.tanh(model(state) + x)
            done += 1
    except TooSlow:
        pass
    return state, done


signal.signal(signal.SIGALRM, give_up)
model = nn.Linear(6, 6)
finished = 0
with torch.no_grad():
    for x in torch.randn(4, 6):
        signal.setitimer(signal.ITIMER_REAL, 0.05)  # <- planted
        state, done = solve(model, x, iterations=200_000)
        signal.setitimer(signal.ITIMER_REAL, 0)
        finished += done
print("iterations", torch.tensor(finished).item())  # <- enters
