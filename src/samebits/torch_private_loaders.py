"""Private names of torch's DataLoader that keyed samples need, and what happens when they are missing.

Read in torch 2.6.0 and 2.13.0, torch/utils/data/dataloader.py.
"""

from __future__ import annotations

from typing import Any

# What an iterator asks for the next indices: the batch sampler, or the sampler. Without the attribute samples
# are not keyed, with a warning.
INDEX_SAMPLER = "_index_sampler"


def index_sampler(loader: Any) -> Any:
    """What a loader's iterator takes indices from; None when torch has no such attribute."""
    return getattr(loader, INDEX_SAMPLER, None)


def replace_index_sampler(iterator: Any, sampler: Any) -> None:
    """Have an iterator that lives on take indices from another one in its next epoch."""
    if hasattr(iterator, INDEX_SAMPLER):
        iterator._index_sampler = sampler
