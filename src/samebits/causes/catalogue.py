"""Questions about all causes together."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from samebits.causes.specification import Cause

if TYPE_CHECKING:
    from samebits.causes.specification import InterventionEvidence, Specification


@cache
def specification_of(cause: Cause | str) -> Specification:
    """Return the specification of a cause: the value `SPECIFICATION` of the module here that has its name.

    Args:
        cause: the cause, or its text.
    """
    module = import_module(f"{__package__}.{Cause(cause).name.lower()}")
    specification: Specification = module.SPECIFICATION
    return specification


@lru_cache(maxsize=4096)
def cause_of_draw(op: str) -> Cause:
    """Return the cause that draws of a source would be; a draw that no cause names is of the environment.

    Args:
        op: the function that gave the value, such as `time.time`. The longest beginning that fits counts.
    """
    beginnings = [(start, cause) for cause in Cause for start in specification_of(cause).draws]
    fitting = [(len(start), cause) for start, cause in beginnings if op.startswith(start)]
    return max(fitting)[1] if fitting else Cause.ENVIRONMENT


@cache
def causes_shown_by(intervention: str) -> tuple[Cause, ...]:
    """Return the causes that an intervention shows when it makes runs identical, the likeliest first."""
    ranked = [
        (row.rank, cause) for cause in Cause for row in _about(cause, intervention) if row.rank is not None
    ]
    return tuple(cause for _, cause in sorted(ranked))


@cache
def causes_acted_on_by(intervention: str) -> frozenset[Cause]:
    """Return the causes that show by themselves that an intervention can have acted."""
    return frozenset(cause for cause in Cause for row in _about(cause, intervention) if row.acts)


def _about(cause: Cause, intervention: str) -> list[InterventionEvidence]:
    return [row for row in specification_of(cause).evidence if row.intervention == intervention]
