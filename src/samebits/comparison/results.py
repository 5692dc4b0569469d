"""The results of a comparison of two records: frozen values for the report and for verification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from samebits.causes import Cause, OriginKind
from samebits.records.events import GIVEN
from samebits.records.kinds import EventKind, Role
from samebits.rng.sources import title_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits._runtime.frames import Site
    from samebits.comparison.evidence import Evidence
    from samebits.comparison.reasons import Reason
    from samebits.comparison.replayed import Replayed, Rerun
    from samebits.recording.distance import Difference
    from samebits.recording.sites import LibraryCall
    from samebits.records.events import Event, TensorInfo
    from samebits.records.notes import Note

Verdict = Literal["identical", "different", "not_judged"]

_ENTERED = (OriginKind.ARGUMENT, OriginKind.OUTSIDE, OriginKind.CONTROL_FLOW, OriginKind.BATCH)
_SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
    "complex128": "c128", "complex64": "c64", "complex32": "c32",
}  # fmt: skip


@dataclass(frozen=True)
class RemedyTrial:
    """The runs that tried a remedy.

    Args:
        of: `change`: the runs had the very change that the remedy shows. `pins`: they had an intervention
            instead, and the change itself was not run.
        identical: whether all pairs of runs were identical.
        pairs: how many pairs were identical.
        interventions: the names of the interventions.
        steps: after how many steps the runs were stopped; None where they ran to their ends.
    """

    of: Literal["change", "pins"]
    identical: bool
    pairs: int = 0
    interventions: tuple[str, ...] = ()
    steps: int | None = None


@dataclass(frozen=True)
class LineChange:
    """Consecutive lines of the user's, and their replacement.

    Args:
        file: their file.
        line: number of the first, from 1. Where lines are only added, they go before the line of that number.
        before: the lines as they are; none where lines are only added.
        after: the lines with the change; none where lines are only removed.
    """

    file: str
    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Remedy:
    """A change proposed to the user.

    Args:
        text: what to change, in words.
        controls: names of the interventions (`samebits run --pin`) that do the same without a code change.
        before: the user's line that changes; empty where lines are only added.
        after: that line with the change.
        changes: the whole change: every line that is changed or added, imports and seeds too.
        trial: the runs that tried it; None where none did.
    """

    text: str
    controls: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    changes: tuple[LineChange, ...] = ()
    trial: RemedyTrial | None = None

    @property
    def confirmed(self) -> bool | None:
        """True if runs with the very change were identical, False if not, None if there were none."""
        return self.trial.identical if self.trial is not None and self.trial.of == "change" else None

    @property
    def pairs(self) -> int:
        """The number of identical pairs of runs with the very change."""
        return self.trial.pairs if self.trial is not None and self.trial.of == "change" else 0


@dataclass(frozen=True)
class Source:
    """The source of a value from outside torch that differed between the runs.

    Args:
        op: the function that gave it, as in `draw` events, such as `time.time`.
        site: the line that drew it.
        cause: the cause that the draw would be.
        library: the library's function that the line called to draw it; None where the line drew it itself.
        in_worker: whether a worker process of a DataLoader drew it.
        is_left_file: whether it is a file, named by `op`, that the run before had written.
    """

    op: str
    site: Site | None
    cause: Cause
    library: LibraryCall | None = None
    in_worker: bool = False
    is_left_file: bool = False


@dataclass(frozen=True)
class Origin:
    """The event at which two runs diverge, and how the difference entered there.

    Args:
        kind: kind of the event, or `Rerun.REPLAY`.
        step: step of the event. This field and all below are of the first run, except where the second run
            did something that the first did not.
        op: op of the event.
        module: module path, None outside modules.
        site: line of user code.
        forward_site: for a backward op, the line whose forward made it.
        inputs_equal: whether all tensor inputs had the same bits; None when it has none or they are unknown.
        difference: how far the outputs are apart, once the tensors were captured.
        origin_kind: how the runs began to differ there; `NONE` at step level.
        names: names of the tensors that differ (parameters, RNG sources), where they have names.
        inputs: descriptions such as `f32[4, 3, 32, 32]`.
        outputs: the same of the outputs or values.
        events: `seq` of the event in each run; None where the run has no such event.
        positions: which tensors of the event differ.
        entered: positions of the tensors that the event read and that hold a value from outside torch.
        other_site: the line of the event in the other run, if it differs.
        other_op: the op of the event in the other run, if it differs.
        entered_site: the line at which the value entered a tensor, where `site` is the line that drew it.
        sources: the draws that the evidence names, first those that can have mattered.
        of_second: whether the event is of the second run, so that the first is the other run.
    """

    kind: EventKind | Rerun
    step: int | None
    op: str | None
    module: str | None
    site: Site | None
    forward_site: Site | None
    inputs_equal: bool | None
    difference: Difference | None = None
    origin_kind: OriginKind = OriginKind.NONE
    names: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    events: tuple[int | None, int | None] = (None, None)
    positions: tuple[int, ...] = ()
    entered: tuple[int, ...] = ()
    other_site: Site | None = None
    other_op: str | None = None
    entered_site: Site | None = None
    sources: tuple[Source, ...] = ()
    of_second: bool = False

    @property
    def site_of_second(self) -> Site | None:
        """The line in the second run."""
        return self.site if self.of_second else self.other_site or self.site

    @classmethod
    def at(cls, event: Event) -> Origin:
        """Make an origin at an event, with the facts that the event itself gives."""
        module, forward_site = event.module or None, event.forward_site
        return cls(event.kind, event.step, event.op, module, event.site, forward_site, None)

    def taken_at(self, site: Site | None) -> Origin:
        """Move the origin to the line that drew the value, and keep the line where it entered a tensor."""
        entered = self.entered_site or self.site
        return replace(self, site=site, entered_site=entered, other_site=None)


@dataclass(frozen=True)
class Confirmation:
    """Pairs of runs with interventions, or with the change that the remedy shows.

    Args:
        interventions: their names; none where the runs had the change.
        identical: how many pairs were identical.
        pairs: how many were made.
        steps: after how many steps the runs were ended; None where they went to their ends.
    """

    interventions: tuple[str, ...]
    identical: int
    pairs: int
    steps: int | None = None

    @property
    def certain(self) -> bool:
        """True if pairs were made and none differed."""
        return self.identical == self.pairs > 0


@dataclass(frozen=True)
class Diagnosis:
    """The cause of an origin, and the evidence.

    Args:
        cause: the cause, `unknown` without evidence.
        evidence: what was observed.
        confirmed_by: the pairs of runs with a change that were identical; None where there were none.
    """

    cause: Cause = Cause.UNKNOWN
    evidence: tuple[Evidence, ...] = ()
    confirmed_by: Confirmation | None = None


@dataclass(frozen=True)
class Finding:
    """An origin, what is known of its cause, and what to do about it.

    Args:
        origin: the event at which two runs diverge.
        diagnosis: the cause and its evidence.
        remedy: the proposed change, if any.
    """

    origin: Origin
    diagnosis: Diagnosis = Diagnosis()
    remedy: Remedy | None = None

    @property
    def cause(self) -> Cause:
        """The cause of the origin."""
        return self.diagnosis.cause

    @property
    def enters(self) -> bool:
        """Whether the difference came from outside torch's data flow: from Python, a file."""
        kind = self.origin.origin_kind
        if kind in _ENTERED or self.origin.op == "seed":
            return True
        return kind in (OriginKind.ORDER, OriginKind.RNG) and self.cause == Cause.UNKNOWN

    def with_cause(self, cause: Cause, *evidence: Evidence) -> Finding:
        """Return the finding with a cause, and more evidence."""
        lines = (*self.diagnosis.evidence, *evidence)
        return replace(self, diagnosis=replace(self.diagnosis, cause=cause, evidence=lines))

    def with_evidence(self, *evidence: Evidence) -> Finding:
        """Return the finding with more evidence."""
        return self.with_cause(self.cause, *evidence)

    def with_sources(self, sources: Iterable[Source]) -> Finding:
        """Return the finding with these draws as the ones that its value may come from."""
        return replace(self, origin=replace(self.origin, sources=tuple(sources)))

    def with_confirmation(self, by: Confirmation) -> Finding:
        """Return the finding with the pairs of runs that confirm its cause."""
        return replace(self, diagnosis=replace(self.diagnosis, confirmed_by=by))


@dataclass(frozen=True)
class Comparison:
    """The verdict over two records, and why.

    Args:
        verdict: whether the runs gave the same bits.
        reason: the reason why they differ or could not be judged; None when identical.
        steps: how many step boundaries were compared.
        findings: origins, the first one first; at step level the first event that differed.
        notes: differences that did not reach the state or an output, and other remarks for the user.
        final_digest: digest over the last state of each run, in hexadecimal.
        step_findings: the events that differed in the first step with a difference, in order.
        first_step: the first step with a difference, None without one.
        several_threads: whether more than one thread of a run made steps, so that step numbers are chance.
        replayed: the findings of executing operations again; None when that was not asked for.
        state: the verdict over parameters, buffers, gradients, optimizer states and saved values alone. It is
            `identical` where only values that were read out differ.
        reported: values that were read out of torch and differ, one for each line of the script that reads
            them, where the state is identical.
        counts_reads: whether neither run trained, so that each value that was read out counts as a step.
        failure: the traceback of an error of samebits that ended the search for an explanation; empty if
            there was none. The verdict does not depend on it.
        child: name of the child process in which the runs differ; empty where that is the script itself.
    """

    verdict: Verdict
    reason: Reason | None
    steps: int
    findings: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()
    final_digest: tuple[str, str] = ("", "")
    step_findings: tuple[Finding, ...] = ()
    first_step: int | None = None
    several_threads: bool = False
    replayed: Replayed | None = None
    state: Verdict = "not_judged"
    reported: tuple[Finding, ...] = ()
    counts_reads: bool = False
    failure: str = ""
    child: str = ""

    @property
    def identical(self) -> bool:
        """True if the runs gave the same bits; False where that could not be judged."""
        return self.verdict == "identical"


@dataclass(frozen=True)
class OriginSearch:
    """The origins of the differences between two op-level records.

    Args:
        findings: the origins, in the order of the second run.
        unread: names of state tensors to exclude: they differ only in memory that nothing wrote or read.
        notes: remarks on these, and on what the search could not reach.
        complete: False when the search met its bound before it had followed every difference.
        behind: findings about values that entered after a read or a draw that differs. Such a value may come
            from that, or be an origin of its own.
    """

    findings: tuple[Finding, ...] = ()
    unread: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    complete: bool = True
    behind: tuple[Finding, ...] = ()


def generator_words(source: str) -> str:
    """Return an RNG source in words."""
    if source == GIVEN:
        return "a generator given to it"
    library = title_of(source)
    return f"{library}'s generator" if library else f"the generator {source}"


def describe(info: TensorInfo) -> str:
    """Describe a tensor in short, such as `f32[4, 3, 32, 32]`, or the generator whose state it is."""
    if info.role == Role.RNG:
        return generator_words(info.name)
    return f"{_SHORT.get(info.dtype, info.dtype)}[{', '.join(map(str, info.shape))}]"


def shortened(text: str) -> str:
    """Return `f32[4, 3]` for `float32[4, 3]`."""
    dtype, bracket, shape = text.partition("[")
    return f"{_SHORT.get(dtype, dtype)}{bracket}{shape}"


def site_text(site: Site | None) -> str:
    """Return a site as text for a line of evidence."""
    if site is None:
        return "an unknown line"
    return f"{site.file}:{site.line}"


def descriptions(event: Event, *roles: Role) -> tuple[str, ...]:
    """Describe the tensors of an event that have one of some roles."""
    return tuple(describe(info) for info in event.tensors if info.role in roles)


def values_of(event: Event) -> tuple[str, ...]:
    """Describe the values of an event: an op's outputs, the tensors of any other event."""
    return tuple(
        describe(info) for info in event.tensors if event.kind != EventKind.OP or info.role == Role.OUT
    )
