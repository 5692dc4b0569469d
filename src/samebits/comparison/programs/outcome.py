"""What a comparison of two programs found: facts, whose sentences `report.programs` makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from samebits._runtime.frames import Site
    from samebits.comparison.reasons import Reason
    from samebits.comparison.results import Verdict
    from samebits.records.events import TensorInfo
    from samebits.records.notes import Note


class Source(StrEnum):
    """Where the name of a tensor comes from."""

    TAP = "tap"
    """`samebits.tap`."""
    MODULE = "module"
    """The path of the module that gave it."""
    PARAM = "param"
    BUFFER = "buffer"
    GRAD = "grad"
    OPTIMIZER = "optimizer"
    BATCH = "batch"
    LOSS = "loss"


STATE = frozenset({Source.PARAM, Source.BUFFER, Source.GRAD, Source.OPTIMIZER})
"""What a record has once for each step."""


class Name(NamedTuple):
    """The name of a tensor in a record.

    Args:
        source: where it comes from.
        name: for parts of a value, `name.key`.
    """

    source: Source
    name: str


class Relation(StrEnum):
    """How the elements of a tensor of one program relate to those of the other's, the closest first."""

    SAME_VALUES = "same-values"
    """The same numbers in the same order; only dtype or shape differ."""
    ROUNDED = "rounded"
    """One is the other, rounded to its dtype."""
    TRANSPOSED = "transposed"
    """The same elements with the dimensions in another order."""
    REORDERED = "reordered"
    """The same elements in another order."""
    PART = "part"
    """One is the first or the last part of the other along one dimension."""
    VALUES = "values"
    """Other numbers."""
    OTHER_SIZE = "other-size"
    """The shapes cannot be compared element by element."""
    NOT_KEPT = "not-kept"
    """The digests differ, and a record does not have the elements."""


class Part(NamedTuple):
    """The part of a tensor that the other program has.

    Args:
        dimension: along which it is cut.
        is_last: whether it is the last part; else the first.
        kept: how many indices it has there.
        of: how many the whole has there.
    """

    dimension: int
    is_last: bool
    kept: int
    of: int


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance between two tensors whose digests differ.

    Args:
        relation: of their elements.
        compared: how many elements were compared; 0 where none could be.
        total: how many elements the tensor has.
        differing: how many of those compared differ.
        max_ulp: the largest distance in units in the last place of `ulp_dtype`; None where that means
            nothing: integers, and where an element that differs is a NaN or an infinity.
        ulp_dtype: the dtype of both, or the less precise one.
        max_abs: the largest absolute difference; None where an element that differs is not finite.
        relative: `max_abs` divided by the largest absolute value in either tensor.
        first_index: the first element that differs, in the first tensor.
        values: that element in both, as text.
        permutation: with `TRANSPOSED`: the dimensions of the first tensor, in the order of the second.
        part: with `PART`.
    """

    relation: Relation
    compared: int = 0
    total: int = 0
    differing: int | None = None
    max_ulp: int | None = None
    ulp_dtype: str = ""
    max_abs: float | None = None
    relative: float | None = None
    first_index: tuple[int, ...] | None = None
    values: tuple[str, str] | None = None
    permutation: tuple[int, ...] = ()
    part: Part | None = None

    @property
    def is_sample(self) -> bool:
        """True if only some of the elements were compared."""
        return 0 < self.compared < self.total


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The difference that is accepted; one of the two.

    Args:
        ulp: largest distance in units in the last place.
        relative: largest `Distance.relative`.
    """

    ulp: int | None = None
    relative: float | None = None

    def accepts(self, distance: Distance) -> bool:
        """Tell whether a distance is within the tolerance; one that could not be measured never is."""
        measured = distance.max_ulp if self.ulp is not None else distance.relative
        limit = self.ulp if self.ulp is not None else self.relative
        return measured is not None and limit is not None and measured <= limit


@dataclass(frozen=True, slots=True)
class Place:
    """One tensor of one record.

    Args:
        name: its name there.
        call: how many tensors of that name came before it; for the state, how many steps.
        step: of its event.
        site: the line that caused it.
        info: its dtype and shape.
        seq: number of the event.
        position: in the event.
    """

    name: Name
    call: int
    step: int
    site: Site | None
    info: TensorInfo
    seq: int
    position: int


@dataclass(frozen=True, slots=True)
class Row:
    """A pair of tensors whose digests differ: the first of their name.

    Args:
        first: in the first record.
        second: in the second.
        distance: between them.
        calls: how many tensors of this name both records have.
        differing: how many of these differ.
        last: distance of the last of these, where there are several.
    """

    first: Place
    second: Place
    distance: Distance
    calls: int
    differing: int
    last: Distance | None = None


class How(StrEnum):
    """By what two tensors of different names were matched."""

    CONTENTS = "contents"
    SHAPE = "shape"


class Matched(NamedTuple):
    """Two names that were taken for one tensor.

    Args:
        first: in the first record.
        second: in the second.
        how: by what.
    """

    first: Name
    second: Name
    how: How


class Calls(NamedTuple):
    """A name with another number of tensors in each record.

    Args:
        name: in the first record.
        first: how many there.
        second: how many in the second record.
    """

    name: Name
    first: int
    second: int


class Why(StrEnum):
    """The reason of a verdict that is not *identical*."""

    DIFFERS = "differs"
    """The first row says what."""
    OTHER_CALLS = "other-calls"
    """A name has another number of tensors in each record, and all that both have are equal."""
    NOTHING_NAMED = "nothing-named"
    """A record has no tensor with a name."""
    NO_COMMON_NAME = "no-common-name"
    NOTHING_MATCHES = "nothing-matches"
    """Neither by name nor by shape."""
    NOT_WHOLE = "not-whole"
    """A run failed, was cut off, or ended with another status than the other; what both have is equal."""
    UNREADABLE = "unreadable"
    """Tensors that could not be read when they were recorded; the rest is equal."""


@dataclass(frozen=True)
class ProgramComparison:
    """The verdict on two programs.

    Args:
        verdict: `identical` if all tensors that both name are equal, or within the tolerance.
        why: None when they are.
        tolerance: None if every bit counts.
        names: how many names were compared.
        tensors: how many pairs of tensors.
        before: how many names have their first tensor before the first that differs; they are equal until
            then.
        rows: the names that differ, in the order of the first record.
        accepted: those that differ within the tolerance.
        same_values: those of which only dtype or shape differ.
        only_first: names that only the first record has.
        only_second: names that only the second has.
        other_calls: names with another number of tensors.
        order: the first name that comes in another order in the second record, and what stands there instead.
        matched: names that were matched although they differ.
        prefixes: what all names of a record begin with, and was left out.
        sampled: names of which a tensor was accepted, or called the same values, by a part of its elements.
        unreadable: how many pairs have a tensor that could not be read.
        open_ended: whether each run ended early, so that it may lack tensors.
        endings: of the runs that did not end with status 0.
        notes: of both records, on how they were made.
        jump: position in `rows` of the name at which the relative difference grows most; None if it does not
            grow tenfold anywhere.
    """

    verdict: Verdict
    why: Why | None
    tolerance: Tolerance | None = None
    names: int = 0
    tensors: int = 0
    before: int = 0
    rows: tuple[Row, ...] = ()
    accepted: tuple[Row, ...] = ()
    same_values: tuple[Row, ...] = ()
    only_first: tuple[Name, ...] = ()
    only_second: tuple[Name, ...] = ()
    other_calls: tuple[Calls, ...] = ()
    order: tuple[Name, Name] | None = None
    matched: tuple[Matched, ...] = ()
    prefixes: tuple[str, str] = ("", "")
    sampled: tuple[Name, ...] = ()
    unreadable: int = 0
    open_ended: tuple[bool, bool] = (False, False)
    endings: tuple[Reason, ...] = ()
    notes: tuple[tuple[Note, ...], tuple[Note, ...]] = ((), ())
    jump: int | None = None
