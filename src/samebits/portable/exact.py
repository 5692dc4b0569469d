"""The ops of torch that give the same bits everywhere as they are."""

from __future__ import annotations

MOVES = frozenset(
    """
    alias as_strided cat clone contiguous copy_ detach empty empty_like empty_strided expand fill_ full full_like
    index_select lift_fresh new_empty new_full new_ones new_zeros ones ones_like permute reshape select slice split
    split_with_sizes squeeze stack t transpose unbind unsqueeze view _unsafe_view zero_ zeros zeros_like _to_copy
    """.split()
)
"""Ops that create, move or view data and compute nothing."""

EXACT = frozenset("abs eq ge gt le lt maximum minimum mul mul_ ne neg relu sub where".split())
"""Ops whose every output is one IEEE operation, or none."""
