"""The two closed lists: the causes of differences, and the kinds of origins."""

from __future__ import annotations

from samebits._text.str_enum import StrEnum


class Cause(StrEnum):
    """The causes of differences between runs. Each has its own specification (`causes.specification`)."""

    UNSEEDED_TORCH = "unseeded-torch"
    UNSEEDED_NUMPY = "unseeded-numpy"
    UNSEEDED_PYTHON = "unseeded-python"
    OS_ENTROPY = "os-entropy"
    WALL_CLOCK = "wall-clock"
    HASH_ORDER = "hash-order"
    ID_ORDER = "id-order"
    RACE = "race"
    WORKER_ORDER = "worker-order"
    UNINITIALIZED = "uninitialized"
    NONDETERMINISTIC_KERNEL = "nondeterministic-kernel"
    THREAD_COUNT = "thread-count"
    AUTOTUNING = "autotuning"
    ENVIRONMENT = "environment"
    UNKNOWN = "unknown"


class OriginKind(StrEnum):
    """The kinds of origins: the ways in which a difference enters a run."""

    KERNEL = "kernel"
    """An operation gave other bits for the same inputs."""
    RNG = "rng"
    """A generator was in another state."""
    ARGUMENT = "argument"
    """An operation was given another Python value."""
    OUTSIDE = "outside"
    """A value entered that no recorded operation made."""
    BATCH = "batch"
    """A loader gave another batch."""
    CONTROL_FLOW = "control-flow"
    """The runs did different things."""
    ORDER = "order"
    """The same operations ran in another order, or an operation took another tensor."""
    UNINITIALIZED = "uninitialized"
    """Memory was read before it was written."""
    NONE = ""
    """Not known: no operation was found."""
