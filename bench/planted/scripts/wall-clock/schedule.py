"""A learning rate that falls with time spent."""

import math
import time


class TimedCosine:
    """Cosine from the first learning rate to zero in so many seconds."""

    def __init__(self, optimizer, seconds):
        self.optimizer = optimizer
        self.first = [group["lr"] for group in optimizer.param_groups]
        self.start, self.seconds = time.time(), seconds

    def step(self):
        share = min(1.0, (time.time() - self.start) / self.seconds)  # <- planted
        for group, lr in zip(self.optimizer.param_groups, self.first):
            group["lr"] = lr * 0.5 * (1 + math.cos(math.pi * share))
