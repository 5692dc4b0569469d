"""What a resume check sees, as codes with arguments. `report.resume_sentences` makes the sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.coded import Coded
from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from samebits._runtime.frames import Site


class Part(StrEnum):
    """The closed list of what a resumed run may fail to restore."""

    PARAMETERS = "parameters"
    BUFFERS = "buffers"
    OPTIMIZER = "optimizer"
    HYPERPARAMETERS = "hyperparameters"
    SCHEDULE = "schedule"
    SCALER = "scaler"
    GENERATOR = "generator"
    DATA = "data"
    AUGMENTATION = "augmentation"
    GRADIENTS = "gradients"
    VARIABLES = "variables"


class DifferenceKind(StrEnum):
    """The closed list of events at which two runs may first differ; most are kinds of events of a record."""

    BATCH = "batch"
    LOSS = "loss"
    GRAD = "grad"
    STEP = "step"
    READ = "read"
    SAVE = "save"
    STEPS = "steps"
    """The number of steps differs."""
    START = "start"
    """The parameters match no step of the whole run."""


class FactCode(StrEnum):
    """The closed list of facts, each with its arguments.

    A *position* is a `Position`, *names* is a tuple of texts. A *generator* has its name in the state log.
    """

    # What differs first.
    BATCH = "batch"
    LOSS = "loss"
    VALUE_READ = "value-read"
    """Op."""
    VALUE_SAVED = "value-saved"
    """Op, names of the tensors that differ and have one."""
    TENSOR = "tensor"
    """Role, name, number of other tensors that differ, whether only the whole run has it."""
    NUMBER_OF_STEPS = "number-of-steps"
    """Steps that the resumed run made, steps that the whole run had left."""
    FIRST_PARAMETERS = "first-parameters"

    # Parameters, buffers, optimizers, settings.
    PARAMETERS_DIFFER = "parameters-differ"
    """Names, number of all, step of the whole run, whether they are as at the start."""
    PARAMETERS_OF_NO_STEP = "parameters-of-no-step"
    BUFFERS_DIFFER = "buffers-differ"
    """Names, number of all, step of the whole run, whether they are as at the start."""
    OPTIMIZER_EMPTY = "optimizer-empty"
    """Names of the values that it should have."""
    OPTIMIZER_DIFFERS = "optimizer-differs"
    """Names, number of all."""
    SETTINGS_DIFFER = "settings-differ"
    """Of each setting: (its name, its value, the value in the whole run)."""

    # Generators that have another state than in the whole run.
    GENERATORS = "generators"
    """Generators, the fact about the state that they have instead."""
    STATE_LATE = "state-late"
    """Step at whose end the whole run had that state; it drew from them since."""
    STATE_AT_START = "state-at-start"
    STATE_BEFORE_STEP = "state-before-step"
    """Another step, before which the whole run had that state."""
    STATE_OF_NO_STEP = "state-of-no-step"

    # Variables.
    VARIABLES = "variables"
    """Of each variable: (its name, a fact about it or a part of it, number of further wrong parts)."""
    VALUE_AT_START = "value-at-start"
    """Name of the variable or its part, its value, the value in the whole run."""
    OTHER_CONTENTS = "other-contents"
    """Type, name, the step of the whole run before which it had these contents; None if there is none."""

    # Batches and gradients.
    BATCH_REPEATED = "batch-repeated"
    """Position of the batch, position of the one that was due, whether the contents differ too."""
    BATCHES_SKIPPED = "batches-skipped"
    """As above; the batch is that of a later step."""
    BATCH_MOVED = "batch-moved"
    """As above; the batch is another one of the same step."""
    SAMPLES_CHANGED = "samples-changed"
    """Numbers of the samples, which are those that were due."""
    TENSORS_CHANGED = "tensors-changed"
    """Names of the batch's tensors that are as due, names of those that are not."""
    OTHER_SAMPLES = "other-samples"
    """Numbers of the samples that came, of those that were due, position of the batch that was due."""
    BATCH_UNKNOWN = "batch-unknown"
    """Position of the batch that was due."""
    BACKWARD_LOST = "backward-lost"
    """Backward passes from which the first step was made, their number in the whole run."""

    # Further evidence about a batch.
    POSITION_SAVED_EARLY = "position-saved-early"
    POSITION_SAVED_LATE = "position-saved-late"
    WORKERS_REPEAT = "workers-repeat"
    """Number of worker processes."""
    WORKERS_SEEDED = "workers-seeded"
    ITERATOR_GENERATOR = "iterator-generator"
    """Generator."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a batch in the whole run.

    Args:
        step: optimizer steps before it.
        number: its position in its pass over the data; None where it is not known.
        pass_number: number of the pass.
    """

    step: int
    number: int | None = None
    pass_number: int | None = None


class Fact(Coded[FactCode]):
    """One fact; other facts may be among its arguments."""

    __slots__ = ()


@dataclass(frozen=True)
class Omission:
    """A part of the state that was not restored when the resumed run made its first step.

    Args:
        part: which.
        fact: how it differs.
        evidence: further facts.
    """

    part: Part
    fact: Fact
    evidence: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class FirstDifference:
    """The first difference between the resumed run and the whole run.

    Args:
        step: number of the step of the whole run.
        kind: of the event.
        fact: the differing value.
        site: the line of the user's code, in the user's own folder.
    """

    step: int | None
    kind: DifferenceKind
    fact: Fact
    site: Site | None = None
