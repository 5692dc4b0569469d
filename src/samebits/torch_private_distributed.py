"""Undocumented names of torch that distributed runs need, and what happens when one is missing.

Seen in torch 2.13.0.
"""

from __future__ import annotations

from typing import Any


def base_seed(iterator: Any) -> int | None:
    """What worker `i` of a DataLoader's iterator adds `i` to, to seed itself; None when it is not there."""
    found = getattr(iterator, "_base_seed", None)
    return found if isinstance(found, int) else None


def kept_iterator(loader: Any) -> Any:
    """The iterator that a DataLoader with persistent workers uses again; None when it has none.

    Without the attribute, indices that were fetched ahead in an epoch that was left early are counted for the
    next one.
    """
    return getattr(loader, "_iterator", None)
