"""Input noise that leaves the caller's generator alone."""

import torch


def noisy(batch, scale=0.05):
    """Batch plus noise; the global generator is as before afterwards."""
    with torch.random.fork_rng():
        torch.seed()  # <- planted
        return batch + scale * torch.randn_like(batch)  # <- enters
