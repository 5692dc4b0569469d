"""A histogram with weights."""

import torch


def weighted_histogram(values, weights, bins):
    """Share of the weight in each bin of [0, 1)."""
    which = (values * bins).long().clamp(max=bins - 1)
    counts = torch.zeros(bins)
    counts.index_put_((which,), weights, accumulate=True)  # <- planted
    return counts / weights.sum()
