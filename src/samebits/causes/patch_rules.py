"""Changes of source code that can remove a cause; `diagnosis.patches` has a function for each."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class PatchRule(Enum):
    """One kind of change. Rules are tried in this order."""

    SORT_SETS = auto()
    """A set is sorted, or kept in the order in which it was filled."""
    CHECKSUM_FOR_HASH = auto()
    """`hash(x)` becomes a checksum."""
    NO_ADDRESSES = auto()
    """Sorting by `id`, and addresses used as numbers, are removed."""
    ORDER_OF_SUBMISSION = auto()
    """Results are taken in the order in which work was given."""
    SORT_LISTINGS = auto()
    """Directories are listed in sorted order."""
    SEED_GENERATORS = auto()
    """A generator that is made without a seed gets one."""
    SEED_WITH_NUMBER = auto()
    """A call that asks for a fresh seed gets a number."""
    REPLACE_CHANGING_SEED = auto()
    """A seed made of the time, a process number or entropy becomes a number."""
    DEFAULT_OF_SEED_OPTION = auto()
    """An option `--seed` without a default gets one."""
    SEED_LIBRARY_OF_DRAW = auto()
    """A global generator that is drawn from and never seeded is seeded."""
    REPLACE_ANY_SEED = auto()
    """Whatever a generator is seeded with becomes a number."""
    FIRST_CANDIDATE = auto()
    """A choice by timing becomes the first candidate."""
    SEEDED_ENTROPY = auto()
    """Entropy of the operating system becomes Python's generator."""
    FIXED_TIME = auto()
    """A time of day becomes a constant."""
    FIXED_PROCESS_FACTS = auto()
    """A process number or the name of the machine becomes a constant."""
    ZEROS_FOR_EMPTY = auto()
    """`empty` becomes `zeros`."""
    DETERMINISTIC_ALGORITHMS = auto()
    """`torch.use_deterministic_algorithms(True)`."""
    FIXED_THREAD_COUNT = auto()
    """A number of threads that changes becomes one that does not."""
    NO_BENCHMARKS = auto()
    """`cudnn.benchmark` is switched off."""
    LOADER_IN_ORDER = auto()
    """A DataLoader gives its batches in order."""
    ONE_THREAD = auto()
    """The script sets the number of threads to one."""
    LOADER_GENERATOR = auto()
    """A DataLoader that shuffles gets a generator of its own."""
    NO_WORKERS = auto()
    """A DataLoader loads in the main process."""


class Reach(Enum):
    """The lines on which a rule may be tried."""

    NEARBY = auto()
    """On the lines of the finding, and those that the values there may come from."""
    ANYWHERE = auto()
    """Also on lines that nothing points at: the code that the rule changes is suspicious by itself."""
    LAST_RESORT = auto()
    """On any line, once nothing else has helped."""
    UNKNOWN_SEED = auto()
    """Nearby, where a generator got another seed in each run and no draw shows the source of the seed."""


class PatchUse(NamedTuple):
    """A rule that may remove a cause.

    Args:
        rule: the rule.
        reach: the lines on which it may be tried for this cause.
    """

    rule: PatchRule
    reach: Reach


def nearby(*rules: PatchRule) -> tuple[PatchUse, ...]:
    """Return rules for the lines that values come from."""
    return tuple(PatchUse(rule, Reach.NEARBY) for rule in rules)


def anywhere(*rules: PatchRule) -> tuple[PatchUse, ...]:
    """Return rules for any line."""
    return tuple(PatchUse(rule, Reach.ANYWHERE) for rule in rules)


def last_resort(*rules: PatchRule) -> tuple[PatchUse, ...]:
    """Return rules for any line, tried after all others."""
    return tuple(PatchUse(rule, Reach.LAST_RESORT) for rule in rules)


SEEDING = (PatchRule.SEED_GENERATORS, PatchRule.SEED_WITH_NUMBER, PatchRule.REPLACE_CHANGING_SEED)
"""The rules that help wherever a seed is missing or changes."""
