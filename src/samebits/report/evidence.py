"""The sentences of evidence: every `Evidence` in English."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.evidence import EvidenceCode
from samebits.comparison.results import generator_words, site_text
from samebits.interventions import intervention_named
from samebits.records.kinds import EventKind
from samebits.report import reasons
from samebits.report.environments import fact_difference
from samebits.report.vocabulary import tensor_text
from samebits.rng.sources import title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from samebits._runtime.frames import Site
    from samebits.comparison.evidence import Evidence
    from samebits.comparison.results import Confirmation

    Call = tuple[str, Site | None, str]

_EARLIER = {EventKind.BATCH: "batches already differed", EventKind.LOSS: "the loss already differed"}


def sentence(evidence: Evidence) -> str:
    """Return the evidence as a sentence without a full stop."""
    form = _SENTENCES[evidence.code]
    return form.format(*evidence.arguments) if isinstance(form, str) else form(*evidence.arguments)


def sentences(evidence: Iterable[Evidence]) -> list[str]:
    """Return the sentences of some evidence."""
    return [sentence(each) for each in evidence]


def confirmation(shown: Confirmation | None) -> str:
    """Return what pairs of runs with a change showed, in words; empty where there were none."""
    if shown is None:
        return ""
    single = shown.identical == shown.pairs == 1
    pairs = "1 pair" if single else f"{shown.identical} of {shown.pairs} pairs"
    verb = "was" if single else "were"
    change = intervention_words(shown.interventions)
    whose = "the" if not change else "its" if single else "their"
    far = "" if shown.steps is None else f" in {whose} first {shown.steps} steps"
    return f"{change or 'with the change below'}, {pairs} of runs {verb} identical{far}"


def intervention_words(names: Iterable[str]) -> str:
    """Return interventions in words, such as `with the hash seed fixed and with the clock frozen`."""
    return " and ".join(intervention_named(name).words for name in names)


def _threads(*names: str) -> str:
    return ", ".join(sorted(name or "the main thread" for name in names))


def _call(call: Call) -> str:
    op, site, module = call
    return f"{op} at {site_text(site)}" + (f" in {module}" if module else "")


def _from_outside(tensor: str, description: str) -> str:
    return (
        f"{tensor} ({description}) differs and no recorded operation wrote it: it came from Python, NumPy, a "
        "file or another process"
    )


def _memory(op: str, reader: Call) -> str:
    return f"{op} returns memory that still holds its old contents; it was read by {_call(reader)}"


def _other_order(op: str, site: Site | None, in_one_thread: bool) -> str:  # noqa: FBT001 - as evidence has it
    where = " in one thread" if in_one_thread else ""
    return f"the same operations ran in a different order{where}: {op} at {site_text(site)}"


def _other_makers(*makers: Call | None) -> str:
    made = " and ".join(_call(maker) if maker else "no recorded operation" for maker in makers)
    return f"it read a tensor that was made by different operations: {made}"


def _shapes(site: Site | None, first: tuple[str, ...], second: tuple[str, ...]) -> str:
    return f"shapes differ at {site_text(site)}: {', '.join(first)} and {', '.join(second)}"


def _went_on(which: str, call: Call | None) -> str:
    how = "did nothing more in this step" if call is None else f"went on with {_call(call)}"
    return f"the {which} run {how}"


def _steps(number: int) -> str:
    return f"it differs in {number} step{'' if number == 1 else 's'}"


def _generator(source: str, step: int, used: int | None, seeding: Evidence, moved: bool) -> str:  # noqa: FBT001
    use = "" if used is None else f"; it was used at step {used}"
    later = (
        "; after that, the runs drew different amounts from it, or its state was replaced" if moved else ""
    )
    return f"the state of {generator_words(source)} differed at step {step}{use}; {sentence(seeding)}{later}"


def _put_back(source: str) -> str:
    return (
        f"{generator_words(source)} was in the same state at the end of the step: the op drew from another "
        "generator, or the state was restored"
    )


def _drew_elsewhere(first: Site | None, first_op: str, second: Site | None, second_op: str) -> str:
    here, there = site_text(first), site_text(second)
    return f"then the first run drew at {here} ({first_op}), the second at {there} ({second_op})"


def _generator_found(op: str, site: Site | None, library: str) -> str:
    verb = "seeded its workers from" if library == "torch" else "found"
    return (
        f"{op} at {site_text(site)} {verb} {title_of(library)}'s generator in a different state in each run"
    )


def _from_entropy(op: str, site: Site | None) -> str:
    what = op if op.startswith("random.") else "a generator was seeded"
    return f"{what} at {site_text(site)} from the operating system's entropy"


def _value(op: str, site: Site | None, given: bool, values: tuple[str, ...]) -> str:  # noqa: FBT001
    verb, shown = "was given" if given else "gave", f": {values[0]} and {values[1]}" if values else ""
    return f"{op} at {site_text(site)} {verb} different values in the two runs{shown}"


def _not_repeated(differing: int, repetitions: int, calls: int, site: Site | None) -> str:
    return (
        f"executed again with the same inputs and generator states, it gave different bits in {differing} of "
        f"{repetitions} repetitions, called {calls} times at {site_text(site)}"
    )


def _interventions_in_vain(interventions: tuple[str, ...], op: str) -> str:
    fixed = intervention_words(interventions)
    return f"{fixed} the runs still differed there, so {op} is not the reason, or not the only one"


_SENTENCES: Mapping[EvidenceCode, str | Callable[..., str]] = {
    EvidenceCode.THREADS_WROTE: lambda *names: (
        f"while it ran, other threads wrote the same memory: {_threads(*names)}"
    ),
    EvidenceCode.OUTPUT_DIFFERED: (
        "inputs, arguments and generator state were the same in both runs, but the output was not"
    ),
    EvidenceCode.OTHER_NUMBER_OF_TENSORS: "it got {} tensors in the first run, {} in the second",
    EvidenceCode.OTHER_ARGUMENTS: "its arguments were ({}) in the first run and ({}) in the second",
    EvidenceCode.OTHER_THREAD: lambda first, second: (
        f"it ran in {_threads(first)} in the first run, in {_threads(second)} in the second"
    ),
    EvidenceCode.FROM_OUTSIDE: _from_outside,
    EvidenceCode.NOT_RECORDED_BEFORE: "operations before step {} were not recorded",
    EvidenceCode.OTHER_BATCH: lambda site: (
        f"the loader at {site_text(site)} gave different contents in each run"
    ),
    EvidenceCode.MEMORY_AS_IT_WAS: _memory,
    EvidenceCode.OTHER_ORDER: _other_order,
    EvidenceCode.THREADS_TOOK_PART: lambda *names: f"threads that took part: {_threads(*names)}",
    EvidenceCode.READ_BY: lambda call: f"the result was read by {_call(call)}",
    EvidenceCode.OTHER_MAKERS: _other_makers,
    EvidenceCode.OTHER_OUTPUT: lambda call: f"it took a different output of {_call(call)} in each run",
    EvidenceCode.SUCH_EVENTS: "{} such events are origins",
    EvidenceCode.SHAPES_DIFFER: _shapes,
    EvidenceCode.RUNS_DIVERGED: "from here on, the runs did different things",
    EvidenceCode.WENT_ON: _went_on,
    EvidenceCode.SOURCE_NOT_RECORDED: "the record does not show where its contents came from",
    EvidenceCode.TOO_LONG_TO_ALIGN: "the step is too long to align: it is not known where the runs diverge",
    EvidenceCode.NOT_IN_STEP: "only one run has it, and in the wrong order: the record is damaged",
    EvidenceCode.ONE_SIDED_TENSOR: lambda which, *tensor: f"only the {which} run has {tensor_text(*tensor)}",
    EvidenceCode.STEPS_DIFFER: _steps,
    EvidenceCode.ALREADY_DIFFERED: lambda kind, step: f"{_EARLIER[kind]} at step {step}",
    EvidenceCode.GENERATOR_STATE: _generator,
    EvidenceCode.NEVER_SEEDED: "it was never seeded",
    EvidenceCode.NOT_SEEDED_LATER: "it was not seeded after recording began",
    EvidenceCode.SEEDED_ALIKE: lambda call, site: (
        f"both runs gave it the same seed, last by {call} at {site_text(site)}"
    ),
    EvidenceCode.SEEDED_BY_ONE: lambda call, site: f"only one run seeded it, by {call} at {site_text(site)}",
    EvidenceCode.SEEDED_OTHER_TIMES: "one run seeded it {} times, the other run {} times",
    EvidenceCode.SEEDED_DIFFERENTLY: lambda first, second, site: (
        f"it was seeded differently: {first} and {second} at {site_text(site)}"
    ),
    EvidenceCode.GIVEN_GENERATOR: (
        "it drew from a generator that was given to it, which was in a different state in each run"
    ),
    EvidenceCode.GENERATOR_PUT_BACK: _put_back,
    EvidenceCode.GENERATOR_BEFORE: lambda source, op, seeding: (
        f"{generator_words(source)} was not in the same state before {op}: {sentence(seeding)}"
    ),
    EvidenceCode.MOVED_UNSEEN: lambda after, site: (
        f"something that is not recorded moved it after {after} at {site_text(site)}"
    ),
    EvidenceCode.DREW_ELSEWHERE: _drew_elsewhere,
    EvidenceCode.DREW_OTHER_AMOUNT: lambda op, site: (
        f"then {op} at {site_text(site)} drew a different amount of numbers in each run"
    ),
    EvidenceCode.GENERATOR_DIFFERED: _generator_found,
    EvidenceCode.SEED_FROM_ENTROPY: _from_entropy,
    EvidenceCode.MEMORY_UNWRITTEN: lambda op, site: (
        f"{op} at {site_text(site)} gave memory that nothing had written, with different contents in each run"
    ),
    EvidenceCode.ORDER_GIVEN: lambda op, site: (
        f"{op} at {site_text(site)} gave a different order in each run"
    ),
    EvidenceCode.VALUE_GIVEN: _value,
    EvidenceCode.OTHER_SOURCES: "{} other sources also gave different values",
    EvidenceCode.THREAD_NUMBERS: ("the first run ended with {} threads for an op, the second with {}"),
    EvidenceCode.OTHER_SETTINGS: lambda fact, more: (
        f"what it gives can depend on the environment, which differs: {fact_difference(fact)}"
        + (f", and {more} more" if more else "")
    ),
    EvidenceCode.ENTERED: lambda site, op: f"it entered at {site_text(site)} ({op})",
    EvidenceCode.LEFT_BY_RUN_BEFORE: lambda path, site: (
        f"written by the run before: {path}, read at {site_text(site)}"
    ),
    EvidenceCode.NOT_REPEATED: _not_repeated,
    EvidenceCode.ONLY_GENERATOR: "its results were the same, but it left its generator in another state",
    EvidenceCode.NOT_OF_TORCH: (
        "it is not an op of torch: it may read something beside its inputs and the known generators"
    ),
    EvidenceCode.REPEAT_MORE: "more repetitions (`--replay 5`) show how often it differs",
    EvidenceCode.FIRST_DRAW: lambda op, site: f"the first draw after it: {op} at {site_text(site)}",
    EvidenceCode.SEEN_ONCE_PLACED: lambda site, op: (
        f"seen once run 1's value was put in place of run 2's at {site_text(site)} ({op})"
    ),
    EvidenceCode.INTERVENTIONS_WITHOUT_TRACE: lambda shown: (
        f"{confirmation(shown)}, but nothing in the record or in the script's source shows how that could "
        "have worked: the cause is still open"
    ),
    EvidenceCode.INTERVENTIONS_DID_NOT_HELP: _interventions_in_vain,
    EvidenceCode.RANKS_DIFFER: reasons.sentence,
    EvidenceCode.DIFFERENT_BEFORE_FIRST_STEP: (
        "they differ before the first step: they were loaded or made differently after the wrapping"
    ),
    EvidenceCode.NO_GRADIENT: "a rank had no gradient of it in that step",
    EvidenceCode.GRADIENTS_EQUAL: (
        "its gradients had the same bits on these ranks, but the optimizer did something different (another "
        "learning rate or state, or a step that one rank left out)"
    ),
    EvidenceCode.GRADIENTS_DIFFER: (
        "its gradients already differed: they were not averaged over the ranks in that step (`no_sync`, a "
        "forward pass that did not go through the wrapper, a change after the averaging)"
    ),
}
