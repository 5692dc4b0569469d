"""Which samples form a batch."""

import random


def batches(count, size):
    """Lists of row numbers, in another order each epoch."""
    rows = list(range(count))
    random.shuffle(rows)  # <- planted
    return [rows[start : start + size] for start in range(0, count, size)]
