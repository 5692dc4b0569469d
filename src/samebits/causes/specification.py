"""The closed lists of causes, origins and patch rules, and the specification of each cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

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
    STREAM_ORDER = "stream-order"
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
    STREAMS_WAIT = auto()
    """A CUDA stream waits for the current one, and the current one for it."""
    BLOCKING_COPIES = auto()
    """A copy waits until it has ended."""


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


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on one source of a cause.

    Args:
        text: the change, one sentence without a full stop.
        controls: names of the interventions (`samebits run --pin`) that do the same without a change of
            the code.
        pattern: a regular expression for the beginning of the source: the op of a draw such as `time.time`,
            or the op of the finding. Empty fits any.
        in_worker: whether it is about draws in the worker processes of a DataLoader.
        by_library: whether it is about a generator that a library made for the user's line. The pattern is
            then for the full name of the library's function.
    """

    text: str
    controls: tuple[str, ...]
    pattern: str = ""
    in_worker: bool = False
    by_library: bool = False

    def fits(self, source: str, *, in_worker: bool, by_library: bool) -> bool:
        """Tell whether the advice is about a source; see `Specification.advice_for`."""
        if self.in_worker and not in_worker:
            return False
        if self.by_library != by_library and (self.by_library or self.pattern):
            return False
        return re.match(self.pattern, source) is not None


@dataclass(frozen=True, slots=True)
class InterventionEvidence:
    """An intervention that can remove differences of a cause.

    Args:
        intervention: its name.
        rank: how likely the cause is among those that the intervention shows, 0 for the likeliest; None where
            identical runs with it are no evidence for the cause.
        acts: whether a finding or draw of the cause shows by itself that the intervention can have acted.
    """

    intervention: str
    rank: int | None = 0
    acts: bool = True


@dataclass(frozen=True, slots=True)
class Specification:
    """One cause.

    Args:
        cause: the cause.
        sentence: what the line did, to follow its location. `{source}` is the source of the evidence in
            parentheses, or empty; `{op}` is the operation; `{taken}` is the source without parentheses, or
            the operation.
        draws: the beginnings of the names of draws that show it.
        weighty_draws: a regular expression for the beginning of the names of those draws that scripts hardly
            ever make for names and logs alone; None for none.
        is_drawn: whether the sentence is about the line of the draw, wherever the value went.
        interventions: sets of interventions to try, the likeliest first.
        evidence: the interventions that show it when they make runs identical.
        advice: advice by source; the first that fits counts.
        library: the library whose generator was not seeded, by the name of its RNG source; else empty.
        seeded_by: the intervention on a source of fresh numbers: with it, one pair of runs with a change is
            enough.
        never_alike: whether two runs with it are never equal by chance.
        acts_at_its_line: whether a draw of it at the line of a finding can have acted there.
        seen_as: the kind of origin that shows it without any draw.
        visible: whether its line may show in the source code alone, without any draw.
        undrawn_calls: full names of calls that cause it and that are not recorded as draws.
        patches: rules that change source code to remove it, and where each may be tried.
        no_patch: a reason why none of these may apply; empty where nothing specific can be said.
        sentence_without_op: the sentence where no operation is known; empty for the same one.
    """

    cause: Cause
    sentence: str
    draws: tuple[str, ...] = ()
    weighty_draws: str | None = None
    is_drawn: bool = False
    interventions: tuple[tuple[str, ...], ...] = ()
    evidence: tuple[InterventionEvidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    library: str = ""
    seeded_by: str = ""
    never_alike: bool = False
    acts_at_its_line: bool = False
    seen_as: OriginKind | None = None
    visible: bool = False
    undrawn_calls: tuple[str, ...] = ()
    patches: tuple[PatchUse, ...] = ()
    no_patch: str = ""
    sentence_without_op: str = ""

    def advice_for(self, source: str, *, in_worker: bool = False, by_library: bool = False) -> Advice | None:
        """Return the first advice that fits a source.

        Args:
            source: the op of a draw or of a finding.
            in_worker: whether the draw was in a worker process of a DataLoader.
            by_library: whether `source` is the function of a library that made the generator.
        """
        about = {"in_worker": in_worker, "by_library": by_library}
        return next((row for row in self.advice if row.fits(source, **about)), None)

    def patch_rules(self, *reaches: Reach) -> tuple[PatchRule, ...]:
        """Return the rules with one of these reaches, in the order in which rules are tried."""
        rules = {use.rule for use in self.patches if use.reach in reaches}
        return tuple(sorted(rules, key=lambda rule: rule.value))
