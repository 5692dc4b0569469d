"""The sentences of notes: every `Note` in English."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.results import site_text
from samebits.errors import SamebitsError
from samebits.interventions import intervention_named
from samebits.records.notes import NoteCode, RecordedPart
from samebits.report import evidence, reasons
from samebits.report.environments import fact_difference
from samebits.report.reasons import loader_words as _loader
from samebits.report.resume_sentences import generators
from samebits.report.style import count
from samebits.report.vocabulary import rank_words, some_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.reasons import Reason
    from samebits.records.kinds import EventKind
    from samebits.records.notes import Note
    from samebits.verification.results import Stress

_MOST_NAMES = 5
_MOST_INTERVENTIONS = 6
_MOST_CHILDREN = 8
_PARTS = {
    RecordedPart.BACKWARD: "a backward pass",
    RecordedPart.BATCH: "a batch",
    RecordedPart.CAPTURED_VALUE: "a kept value",
    RecordedPart.READ: "a read",
    RecordedPart.REPETITION: "a repetition of {}",
    RecordedPart.SAVE: "a save",
    RecordedPart.SEED: "a seed",
    RecordedPart.STEP: "a step",
    RecordedPart.EPOCH: "an epoch of a DataLoader",
    RecordedPart.OPERATION: "an operation",
    RecordedPart.OPTIMIZER: "an optimizer",
    RecordedPart.DRAWS: "draws",
    RecordedPart.GENERATOR_STATES: "generator states",
    RecordedPart.GRADIENTS: "gradients",
    RecordedPart.INDICES: "indices of a batch",
    RecordedPart.LAST_STATE: "the last state",
    RecordedPart.REPLICAS: "the replicas",
    RecordedPart.STATE_LOG: "the state log",
    RecordedPart.TAP: "a tap {}",
    RecordedPart.VALUES: "values",
    RecordedPart.INVENTORY: "the packages and the code",
    RecordedPart.DATA_FILES: "the data files that were read",
}
_PURPOSES = {"record": "record ops", "replay": "execute ops again"}
_NOT_SAVED = "run 1 had no such event, or did not keep it"
_OTHER_FORM = "they had another shape or dtype, or no contents of a kind that can be kept"
_REASONS = {"missing": _NOT_SAVED, "misfit": _OTHER_FORM, "both": f"{_NOT_SAVED}; {_OTHER_FORM}"}
_STILL_OPEN = {
    "which": "find out which of these matter",
    "chance": "see in more pairs whether that was chance",
}


def sentence(note: Note) -> str:
    """Return the note as a sentence without a full stop.

    Args:
        note: a code and its arguments.
    """
    form = _SENTENCES[note.code]
    return form.format(*note.arguments) if isinstance(form, str) else form(*note.arguments)


def sentences(notes: Iterable[Note]) -> list[str]:
    """Return the sentences of some notes."""
    return [sentence(note) for note in notes]


def gathered(notes: Sequence[Note]) -> list[str]:
    """Return the sentences of some notes; one at the end counts all values that could not be put in place."""
    missing = [note for note in notes if note.code is NoteCode.NOT_PLACED]
    if len(missing) < 2:
        return sentences(notes)
    others = [note for note in notes if note.code is not NoteCode.NOT_PLACED]
    return [*sentences(others), f"{_NOT_PLACED} at {len(missing)} operations (--verbose lists them)"]


def _interventions(*names: str) -> str:
    return f"made {', '.join(map(_intervention, names))}"


def _intervention(name: str) -> str:
    try:
        return f"{intervention_named(name).words} (pin {name})"
    except SamebitsError:  # of another version of samebits
        return f"with the pin {name}"


def _not_recorded(part: str, error: str, op: str) -> str:
    name = f"`{op}`" if op and part == RecordedPart.TAP.value else op  # a user's name may be any word
    what = next((words.format(name).rstrip() for known, words in _PARTS.items() if known.value == part), part)
    return f"recording of {what} failed and left something out ({error})"


def _not_placed(events: str, all_events: str, op: str, where: str, why: str) -> str:
    return f"{_NOT_PLACED} at {events} of {all_events} events of {op} at {where}: {_REASONS.get(why, why)}"


def _child_not_recorded(command: str, at: str) -> str:
    started = f" (started at {at})" if at else ""
    return f"the child process `{command}`{started} was not recorded: if it trains, that is not compared"


def _compile_off(purpose: str) -> str:
    what = _PURPOSES.get(purpose, purpose)
    return f"torch.compile was switched off to {what}: this run is eager"


def _step_not_repeated(step: str, ranks: str, kind: str, name: str, number: str) -> str:
    at = f" on {ranks}" if ranks else ""
    many = f" ({number} tensors differ, the first is {name})" if name else ""
    return f"ReplayGuard found a {kind} mismatch in its step {step}{at}{many}"


def _excluded(*names: str) -> str:
    return f"left out of the comparison: {_listed(names, _MOST_NAMES)}"


def _code_changed(*names: str) -> str:
    which = "was" if len(names) == 1 else "were"
    return (
        f"{_listed(names, _MOST_NAMES)} {which} changed while the run went on: what ran is the code that was "
        "there before"
    )


def _listed(names: tuple[str, ...], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _one_sided(kind: EventKind, op: str, site: tuple[str, int] | None, first: int, second: int) -> str:
    at = f" at {site[0]}:{site[1]}" if site else ""
    counts = f"{first} only in the first run, {second} only in the second"
    return f"the {kind} `{op}`{at} gave values that differ: {counts}"


def _data_not_compared(number: int, first: str) -> str:
    if int(number) == 1:
        return f"it is not known whether data file {first} was the same: a record has no digest of it"
    files = count(int(number), "data file")
    return f"it is not known whether {files} were the same ({first}, …): a record has no digest of them"


def _kept_longer(step: int, number: int) -> str:
    return (
        f"from step {step} on, only one run still holds {number} tensor{'' if number == 1 else 's'} of "
        "models that are no longer used: Python's garbage collector decides when they are freed"
    )


def _rank_steps(*numbers: tuple[int, tuple[int, ...]]) -> str:
    told = ", ".join(f"{number} on {rank_words(ranks)}" for number, ranks in numbers)
    return f"the ranks made different numbers of steps: {told}"


def _on_no_rank(site: Site | None, epoch: int, missing: int, size: int) -> str:
    verb = "is" if missing == 1 else "are"
    return f"{_loader(site)}, epoch {epoch}: {missing} of {size} samples {verb} on no rank"


def _padded(site: Site | None, repeated: int, size: int) -> str:
    verb = "comes" if repeated == 1 else "come"
    return (
        f"{_loader(site)}: {repeated} of {size} samples {verb} twice in an epoch, because "
        "DistributedSampler pads the shards to one length"
    )


def _repeated(site: Site | None, number: int) -> str:
    return f"{_loader(site)}: {number} sample{'' if number == 1 else 's'} came more than once in an epoch"


def _same_seeds(site: Site | None, *ranks: int) -> str:
    return (
        f"{_loader(site)}: the workers of {rank_words(ranks)} start with the same seeds, so random "
        "augmentations are the same on these ranks; `--per-rank-seeds`, or a `worker_init_fn` that knows the "
        "rank, makes them differ"
    )


def _earlier_files(run: int, files: tuple[tuple[str, Site], ...], more: int, before: Reason | None) -> str:
    shown = "; ".join(f"{path}, read at {site_text(site)}" for path, site in files)
    listed = shown + (f" and {more} more" if more else "")
    text = (
        f"run {run} read what run {run - 1} had written ({listed}); `--fresh` gives each run its own copy of "
        "the folder"
    )
    compared = f". Run {run + 1} is compared with run {run}; of run 1 {reasons.sentence_or_none(before)}"
    return text if before is None else text + compared


def _changes(stress: Stress) -> list[str]:
    words = [] if stress.hash_seed is None else [f"PYTHONHASHSEED={stress.hash_seed}"]
    words += [f"environment padding {stress.padding} bytes", f"scheduling noise {stress.scheduling_noise}"]
    if stress.memory_fill is not None:
        words.append(f"memory fill 0x{stress.memory_fill:02X}")
    return [*words, "fixed addresses" if stress.fixed_layout else "default addresses"]


def _children(*others: tuple[str, int | None]) -> str:
    told = tuple(name if step is None else f"{name} at step {step}" for name, step in others)
    return f"the state differs in other child processes too: {_listed(told, _MOST_CHILDREN)}"


def _replay_differed(unrepeated: bool, how: Reason | None) -> str:  # noqa: FBT001 - as a note holds it
    why = (
        "which is possible if operations do not repeat"
        if unrepeated
        else "although every operation repeated: one of them races and did not show it (`--replay 5` looks "
        "more often), a thread raced, something beside them depends on time, or torch chose other "
        "operations because it was watched (docs/reference/recording.md)"
    )
    told = f"{why}: {reasons.sentence_or_none(how)}"
    return f"the run with operations executed again gave different bits from run 1, {told}"


def _two_processors(first: tuple[str, str], second: tuple[str, str], run: int) -> str:
    return (
        f"run 1 was made on {_machine(*first)} and run {run} on {_machine(*second)}: two kinds of processors "
        "may round differently, so this is no proof that the script is nondeterministic, and it is not "
        "explained; ask for one kind of machine (--executor-option constraint=NAME), or give --portable"
    )


def _machine(name: str, processor: str) -> str:
    return f"{name or 'one machine'} ({processor or 'an unknown processor'})"


def _compiled_atomics(*kernels: str) -> str:
    return (
        "deterministic algorithms are on, and code that torch.compile generated adds with atomic operations "
        f"all the same, in an order that may differ from run to run: {', '.join(kernels)}"
    )


_NOT_PLACED = "run 1's value could not be put in place"
_SENTENCES: Mapping[NoteCode, str | Callable[..., str]] = {
    NoteCode.UNREADABLE_TENSORS: "{} tensor(s) could not be read and were left out",
    NoteCode.INTERVENTIONS: _interventions,
    NoteCode.NO_SPACE: ("no more values could be kept, {} MB are full: {} further event(s) at the origins"),
    NoteCode.NOT_RECORDED: _not_recorded,
    NoteCode.NOT_PLACED: _not_placed,
    NoteCode.CHILD_NOT_RECORDED: _child_not_recorded,
    NoteCode.COMPILED: "torch.compile made {} graph(s): compiled code is recorded by step, not by op",
    NoteCode.COMPILE_OFF: _compile_off,
    NoteCode.COMPILED_ATOMICS: _compiled_atomics,
    NoteCode.NO_LOAD: "`--stress` could give the GPU no other work from some moment on ({})",
    NoteCode.VALUES_BOUND: "values were kept up to {} MB: of {} further tensor(s) there is only the digest",
    NoteCode.STEP_NOT_REPEATED: _step_not_repeated,
    NoteCode.CODE_CHANGED: _code_changed,
    NoteCode.TEXT: "{}",
    NoteCode.UNFIT: reasons.sentence,
    NoteCode.EXCLUDED: _excluded,
    NoteCode.ONE_SIDED_VALUES: _one_sided,
    NoteCode.GENERATOR_DIFFERED: lambda seen: f"{evidence.sentence(seen)}; nothing that was compared differs",
    NoteCode.EARLY_DIFFERENCE: "the {} differed at step {}, but the state and the outputs did not",
    NoteCode.ARGUMENTS_NOT_RECORDED: (
        "arguments were not recorded (--no-arguments), so it is not known whether both runs had the same"
    ),
    NoteCode.ARGUMENTS_MASKED: (
        "secrets in arguments are masked in the records, so it is not known whether both runs had the same"
    ),
    NoteCode.ENVIRONMENT: lambda fact: f"the environments differ: {fact_difference(fact)}",
    NoteCode.MORE_OF_ENVIRONMENT: "the environments differ: {} further differences",
    NoteCode.DATA_NOT_COMPARED: _data_not_compared,
    NoteCode.STATE_MOVED: (
        "from step {} on, the same values come in a different order: {} state tensors have other names"
    ),
    NoteCode.STATE_KEPT_LONGER: _kept_longer,
    NoteCode.UNREAD_MEMORY: "{} holds memory that was never written; nothing that was compared read it",
    NoteCode.LATE_VALUE: lambda site: (
        f"a value that differs entered at {site_text(site)}, after a read or draw that differs"
    ),
    NoteCode.SEARCH_BOUND: (
        "the search ended after {} pairs of tensors and operations: there may be further origins"
    ),
    NoteCode.SEARCH_TIME: (
        "there was no time to search the records to the end: there may be further origins"
    ),
    NoteCode.EVENT_MISSING: "the record lacks an event that others refer to",
    NoteCode.RANK_STEPS: _rank_steps,
    NoteCode.AVERAGED: lambda *names: (
        f"{some_names(names)} differed and was equal again later, so it is averaged from time to time"
    ),
    NoteCode.SAME_BATCHES: "all ranks had the same batches in {} of {} steps",
    NoteCode.SAME_SAMPLES: lambda site, number: (
        f"{_loader(site)}: every rank takes the same {number} samples (no DistributedSampler); right for an "
        "evaluation that each rank does by itself, wrong for training"
    ),
    NoteCode.SAMPLES_LEFT_OUT: lambda site, missing, size: (
        f"{_loader(site)}: {missing} of {size} samples are left out (drop_last)"
    ),
    NoteCode.SAMPLES_ON_NO_RANK: _on_no_rank,
    NoteCode.SAMPLES_PADDED: _padded,
    NoteCode.SAMPLES_REPEATED: _repeated,
    NoteCode.EPOCH_NOT_SET: lambda site: (
        f"{_loader(site)}: epoch 1 repeats the order of epoch 0: `sampler.set_epoch(epoch)` was not called"
    ),
    NoteCode.SAME_WORKER_SEEDS: _same_seeds,
    NoteCode.LAUNCH_UNEXPLAINED: "the operation was not found: {}",
    NoteCode.LAUNCHES_AGREED: "two more launches with every operation recorded did not differ",
    NoteCode.COLLECTIVES_NOT_FOLLOWED: (
        "the operation was not found: what collectives write cannot be followed"
    ),
    NoteCode.INTERRUPTED: "interrupted: this is what is known so far",
    NoteCode.OUT_OF_TIME: lambda seconds, option="--budget": (
        f"the time for explaining, {seconds:.0f} s, ran out: this is what is known so far; {option} SECONDS "
        "gives it more"
    ),
    NoteCode.SEARCH_FAILED: "the search for the cause ended early: {}",
    NoteCode.PATCH_SEARCH_FAILED: "the search for a patch ended early: {}",
    NoteCode.TWO_PROCESSORS: _two_processors,
    NoteCode.STRESS: lambda run, stress: f"stress in run {run}: {', '.join(_changes(stress))}",
    NoteCode.EXIT_STATUS: "{} ended with exit status {} in both runs, without an exception",
    NoteCode.READ_EARLIER_FILES: _earlier_files,
    NoteCode.DIFFERENCE_NOT_SEEN_AGAIN: (
        "further runs without any change did not differ, so runs with something pinned or patched would show "
        "nothing: the cause is still open"
    ),
    NoteCode.INTERVENTIONS_IN_DOUBT: lambda shown, open_question: (
        f"{evidence.confirmation(shown)}; there was no time to {_STILL_OPEN[open_question]}"
    ),
    NoteCode.INTERVENTIONS_IN_VAIN: lambda *names: (
        f"the runs still differed with these pinned: {_listed(names, _MOST_INTERVENTIONS)} "
        "(`samebits verify --pin`)"
    ),
    NoteCode.OPS_TAKE_TOO_LONG: lambda option="--budget": (
        "with every operation recorded, the script takes longer than the time for explaining, so this is "
        f"what the step-level runs showed; {option} SECONDS gives it more"
    ),
    NoteCode.OPS_FAILED: (
        "the script failed when every operation was recorded ({}), so this is what the step-level runs showed"
    ),
    NoteCode.OPS_FAILED_FROM_START: (
        "the script failed when every operation was recorded from its start ({})"
    ),
    NoteCode.OPS_AGREED: (
        "the runs did not differ in {} more pairs with every operation recorded: recording slows the script "
        "down and runs its operations one by one, which hides some races. This is what the step-level runs "
        "showed; `samebits verify --stress` may show the difference again"
    ),
    NoteCode.NO_OP_BLAMED: "the operation was not found, so this is what the step-level runs showed",
    NoteCode.VALUES_NOT_FETCHED: (
        "the values could not be fetched: in {} more pairs of runs the operation gave the same bits, or was "
        "not reached in the same way"
    ),
    NoteCode.ORIGINS_OUT_OF_TIME: ("there was no time to look for all origins: there may be further ones"),
    NoteCode.CHILDREN_DIFFER_TOO: _children,
    NoteCode.CHILD_COMPARED: "the child process {} was compared too: {} steps",
    NoteCode.REPLAY_ENDED: "the script did not finish while operations were executed again: {}",
    NoteCode.NOT_REPLAYED: "no operation was executed again: that run left no record",
    NoteCode.REPLAY_DIFFERED: _replay_differed,
    NoteCode.WHOLE_RUN: lambda note: f"whole run: {sentence(note)}",
    NoteCode.NO_TIME_FOR_KILLS: lambda *steps: (
        f"there was no time to kill the script after {', '.join(map(str, steps))} steps"
    ),
    NoteCode.REPETITION_NOT_SEEN: (
        "interrupted before the script itself was run twice, so it is not known whether it repeats"
    ),
    NoteCode.GENERATORS_IDLE: lambda *names: (
        f"not restored, but nothing drew from it later: {generators(names)}"
    ),
}
