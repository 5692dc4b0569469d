"""How many threads this process may use."""

import os

import torch


def claim_threads(most=4):
    """One to `most` threads."""
    torch.set_num_threads(1 + os.getpid() % most)  # <- planted
