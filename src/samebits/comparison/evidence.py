"""Evidence of a difference: a code and its arguments. `report.evidence` makes the sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._text.coded import Coded
from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from samebits.records.events import Event


class EvidenceCode(StrEnum):
    """The closed list of kinds of evidence, each with its arguments.

    A *call* is (op, site, module) of an event. The first of two arguments is that of the first run.
    """

    # Of an op, a batch or a value.
    THREADS_WROTE = "threads-wrote"
    """Names of threads; the main thread's is empty, here and below."""
    OUTPUT_DIFFERED = "output-differed"
    OTHER_NUMBER_OF_TENSORS = "other-number-of-tensors"
    """Two numbers."""
    OTHER_ARGUMENTS = "other-arguments"
    """Two texts."""
    OTHER_THREAD = "other-thread"
    """Two threads."""
    FROM_OUTSIDE = "from-outside"
    """Name of the tensor or its part in the op, its description."""
    NOT_RECORDED_BEFORE = "not-recorded-before"
    """Step from which operations are recorded."""
    OTHER_BATCH = "other-batch"
    """Site of the loader."""
    MEMORY_AS_IT_WAS = "memory-as-it-was"
    """The op that allocated it, the call that read it."""
    OTHER_ORDER = "other-order"
    """Op, site, whether in one thread."""
    THREADS_TOOK_PART = "threads-took-part"
    """Names of threads."""
    READ_BY = "read-by"
    """The call."""
    OTHER_MAKERS = "other-makers"
    """Two calls; None for no recorded operation."""
    OTHER_OUTPUT = "other-output"
    """The call that gave both."""
    SUCH_EVENTS = "such-events"
    """A number."""
    SHAPES_DIFFER = "shapes-differ"
    """Site, two lists of descriptions."""

    # Of runs that did different things.
    RUNS_DIVERGED = "runs-diverged"
    WENT_ON = "went-on"
    """`first` or `second`, the call; None for nothing more."""
    SOURCE_NOT_RECORDED = "source-not-recorded"
    TOO_LONG_TO_ALIGN = "too-long-to-align"
    NOT_IN_STEP = "not-in-step"
    ONE_SIDED_TENSOR = "one-sided-tensor"
    """`first` or `second`, its role, its name, its `TensorInfo`."""
    STEPS_DIFFER = "steps-differ"
    """A number."""
    ALREADY_DIFFERED = "already-differed"
    """`batch` or `loss`, step."""

    # Of generators.
    GENERATOR_STATE = "generator-state"
    """Source, step, step of its use or None, how it was seeded, whether it moved after that."""
    NEVER_SEEDED = "never-seeded"
    NOT_SEEDED_LATER = "not-seeded-later"
    SEEDED_ALIKE = "seeded-alike"
    """Call that seeds, site."""
    SEEDED_BY_ONE = "seeded-by-one"
    """Call that seeds, site."""
    SEEDED_OTHER_TIMES = "seeded-other-times"
    """Two numbers."""
    SEEDED_DIFFERENTLY = "seeded-differently"
    """Two calls that seed, site of the first."""
    GIVEN_GENERATOR = "given-generator"
    GENERATOR_PUT_BACK = "generator-put-back"
    """Source."""
    GENERATOR_BEFORE = "generator-before"
    """Source, op, how it was seeded."""
    MOVED_UNSEEN = "moved-unseen"
    """Call or op after which, site."""
    DREW_ELSEWHERE = "drew-elsewhere"
    """Site, op, site, op."""
    DREW_OTHER_AMOUNT = "drew-other-amount"
    """Op, site."""

    # Of draws.
    GENERATOR_DIFFERED = "generator-differed"
    """Op, site, library."""
    SEED_FROM_ENTROPY = "seed-from-entropy"
    """Op, site."""
    MEMORY_UNWRITTEN = "memory-unwritten"
    """Op, site."""
    ORDER_GIVEN = "order-given"
    """Op, site."""
    VALUE_GIVEN = "value-given"
    """Op, site, whether it was given to the op, the two values if they can be shown."""
    OTHER_SOURCES = "other-sources"
    """A number."""
    THREAD_NUMBERS = "thread-numbers"
    """Two numbers."""
    OTHER_SETTINGS = "other-settings"
    """A `FactDifference`, the number of further ones."""
    ENTERED = "entered"
    """Site, op."""
    LEFT_BY_RUN_BEFORE = "left-by-run-before"
    """Path, site that read it."""

    # Of further runs.
    NOT_REPEATED = "not-repeated"
    """Repetitions that differed, repetitions, calls, site."""
    ONLY_GENERATOR = "only-generator"
    NOT_OF_TORCH = "not-of-torch"
    REPEAT_MORE = "repeat-more"
    FIRST_DRAW = "first-draw"
    """Op, site."""
    SEEN_ONCE_PLACED = "seen-once-placed"
    """Site, op of the first origin."""
    INTERVENTIONS_WITHOUT_TRACE = "pins-without-trace"
    """A `Confirmation`."""
    INTERVENTIONS_DID_NOT_HELP = "pins-did-not-help"
    """Names of the interventions, what they fix."""

    # Of ranks.
    RANKS_DIFFER = "ranks-differ"
    """The `Reason`."""
    DIFFERENT_BEFORE_FIRST_STEP = "different-before-first-step"
    NO_GRADIENT = "no-gradient"
    GRADIENTS_EQUAL = "gradients-equal"
    GRADIENTS_DIFFER = "gradients-differ"


class Evidence(Coded[EvidenceCode]):
    """One observation; other evidence may be among its arguments."""

    __slots__ = ()


def call_of(event: Event) -> tuple[object, ...]:
    """Return the op of an event, its site and its module."""
    return event.op, event.site, event.module
