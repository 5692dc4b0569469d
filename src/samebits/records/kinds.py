"""The closed lists of event kinds, tensor roles and recording levels."""

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
    TAP = "tap"
    """A value that the script named (`samebits.tap`), or what a module gave."""
    EARLIER = "earlier"
    """A value of a tensor left torch before the call that is judged. It decides nothing, but may explain."""


KINDS = tuple(EventKind)
"""The kinds by the numbers that a record stores."""


class Role(StrEnum):
    """The part that a tensor plays in its event."""

    IN = "in"
    """Read by an op: as it was before."""
    OUT = "out"
    """A tensor that an op made or changed, as it is after the op."""
    PARAM = "param"
    BUFFER = "buffer"
    GRAD = "grad"
    OPTIMIZER = "optimizer"
    VALUE = "value"
    """The contents of a batch, a loss, a read or a save; or a draw."""
    RNG = "rng"
    """The state of one RNG source."""


class Level(StrEnum):
    """The amount of a run that is recorded."""

    STEP = "step"
    """The state after each step."""
    OP = "op"
    """Every operation too."""
    CLOCK = "clock"
    """The times of the steps, and no record."""
