"""The causes of differences between runs: a closed list, with a specification in a module for each."""

from __future__ import annotations

from samebits.causes.catalogue import (
    cause_of_draw,
    causes_acted_on_by,
    causes_shown_by,
    specification_of,
)
from samebits.causes.specification import Cause, OriginKind, PatchRule, Reach

__all__ = [
    "Cause",
    "OriginKind",
    "PatchRule",
    "Reach",
    "cause_of_draw",
    "causes_acted_on_by",
    "causes_shown_by",
    "specification_of",
]
