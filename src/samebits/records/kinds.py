"""The closed lists by which the events of a record are told apart."""

from __future__ import annotations

from samebits._text.str_enum import StrEnum


class EventKind(StrEnum):
    """The kind of an event. A record stores its position in this list, which therefore never changes."""

    BATCH = "batch"
    DRAW = "draw"
    """A value was taken from a source of entropy outside torch."""
    OP = "op"
    LOSS = "loss"
    GRAD = "grad"
    STEP = "step"
    RNG = "rng"
    """A generator was seeded, or its state was noted."""
    COLLECTIVE = "collective"
    READ = "read"
    """A value of a tensor left torch."""
    SAVE = "save"


KINDS = tuple(EventKind)
"""The kinds by the numbers that a record stores."""
