"""Augmented pictures."""

import os
import random

from torch.utils.data import Dataset


def init_worker(worker_id):
    """Another seed in each worker."""
    random.seed(os.getpid() + worker_id)  # <- planted


class Augmented(Dataset):
    """Pictures, flipped and shifted at random."""

    def __init__(self, pictures):
        self.pictures = pictures

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if random.random() < 0.5:  # <- planted
            picture = picture.flip(2)
        return picture.roll(random.randrange(4), 1), index % 2  # <- planted
