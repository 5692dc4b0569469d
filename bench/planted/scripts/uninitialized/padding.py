"""Sequences of several lengths become one batch."""

import torch

LONGEST = 7


def collate(sequences):
    """A batch and the lengths."""
    batch = sequences[0].new_empty(len(sequences), LONGEST)  # <- planted
    for row, sequence in zip(batch, sequences):
        row[: len(sequence)] = sequence
    return batch, torch.tensor([float(len(sequence)) for sequence in sequences])
