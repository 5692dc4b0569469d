"""The sentences of what a resume check sees: every `Fact` in English."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.commands.resume_facts import FactCode
from samebits.recording.naming import LOADER_GENERATOR
from samebits.report.vocabulary import ROLE_WORDS, some_names
from samebits.rng.sources import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from samebits.commands.resume_facts import Fact, Position
    from samebits.records.kinds import Role

    Setting = tuple[str, str, str]
    Variable = tuple[str, Fact, int]

_SETTINGS = 3
_SAMPLES = 4  # of a batch; its tensors too
_VARIABLES = 4
_GENERATORS = {
    "torch": "torch's CPU generator",
    "python": "Python's `random`",
    "numpy": "NumPy's global generator",
    LOADER_GENERATOR: "the loader's own generator",
}


def sentence(fact: Fact) -> str:
    """Return the fact as a sentence without a full stop."""
    form = _SENTENCES[fact.code]
    return form.format(*fact.arguments) if isinstance(form, str) else form(*fact.arguments)


def generators(names: Sequence[str]) -> str:
    """Return generators, named as in the state log, in words."""
    return ", ".join(map(_generator, names))


def _generator(name: str) -> str:
    titles = {source.name: f"{source.title}'s generator" for source in BUILT_IN if source.title}
    return _GENERATORS.get(name) or titles.get(name) or f"torch's generator of {name}"


def _clauses(clauses: Sequence[str], shown: int) -> str:
    more = f"; and {len(clauses) - shown} more" if len(clauses) > shown else ""
    return "; ".join(clauses[:shown]) + more


def _saved(op: str, names: Sequence[str]) -> str:
    return f"a saved value ({op})" + (f": {some_names(names)}" if names else "")


def _tensor(role: Role, name: str, others: int, is_missing: bool) -> str:  # noqa: FBT001 - as the fact has it
    more = f" and {others} more" if others else ""
    only = " (the resumed run has none)" if is_missing else ""
    return f"{ROLE_WORDS.get(role, role)} {name}{more}{only}"


def _differ(noun: str, names: Sequence[str], total: int, step: int, is_initial: bool) -> str:  # noqa: FBT001
    fresh = " (as at the start)" if is_initial else ""
    return f"{len(names)} of {total} {noun} differ from those before step {step}: {some_names(names)}{fresh}"


def _settings(*settings: Setting) -> str:
    return _clauses([f"{name} is {value}, not {due}" for name, value, due in settings], _SETTINGS)


def _variables(*variables: Variable) -> str:
    return _clauses(
        [
            sentence(fact) + (f" (and {more} more in `{name}`)" if more else "")
            for name, fact, more in variables
        ],
        _VARIABLES,
    )


def _other_contents(kind: str, name: str, step: int | None) -> str:
    return f"{kind} `{name}` has other contents" + ("" if step is None else f": it is as before step {step}")


def _position(position: Position) -> str:
    if position.number is None:
        return f"the one of step {position.step}"
    return f"batch {position.number} of pass {position.pass_number}"


def _too(is_changed: bool) -> str:  # noqa: FBT001 - as the facts have it
    return ", with other contents (augmentation)" if is_changed else ""


def _repeated(got: Position, due: Position, is_changed: bool) -> str:  # noqa: FBT001
    return (
        f"the batch is that of step {got.step} again ({_position(got)}), where {_position(due)} was due"
        f"{_too(is_changed)}"
    )


def _skipped(got: Position, due: Position, is_changed: bool) -> str:  # noqa: FBT001
    out = "is left out" if got.step == due.step + 1 else "and those up to there are left out"
    return (
        f"the batch is that of step {got.step} ({_position(got)}): {_position(due)} {out}{_too(is_changed)}"
    )


def _samples(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:_SAMPLES])) + (", ..." if len(numbers) > _SAMPLES else "")


def _tensors(names: Sequence[str]) -> str:
    return ", ".join(f"tensor {name}" for name in names[:_SAMPLES])


def _other_samples(got: Sequence[int], due: Sequence[int], position: Position) -> str:
    return (
        f"the order is different: samples {_samples(got)} came where {_samples(due)} were due "
        f"({_position(position)})"
    )


def _backward(made: int, due: int) -> str:
    return (
        f"the first step was made from {made} backward pass{'' if made == 1 else 'es'}, where the whole run "
        f"made {due}: the gradients accumulated before the kill are lost"
    )


def _workers(number: int) -> str:
    return (
        f"drawn in {number} worker process{'' if number == 1 else 'es'}, which started again from the same "
        "seeds: the draws for earlier samples were not repeated"
    )


_SENTENCES: Mapping[FactCode, str | Callable[..., str]] = {
    FactCode.BATCH: "the batch of the DataLoader",
    FactCode.LOSS: "the loss",
    FactCode.VALUE_READ: "a value read ({})",
    FactCode.VALUE_SAVED: _saved,
    FactCode.TENSOR: _tensor,
    FactCode.NUMBER_OF_STEPS: "it made {} steps, where the whole run had {} left",
    FactCode.FIRST_PARAMETERS: "the parameters before the first step",
    FactCode.PARAMETERS_DIFFER: lambda *arguments: _differ("parameters", *arguments),
    FactCode.PARAMETERS_OF_NO_STEP: (
        "before its first step, the resumed run's parameters match no step of the whole run: they are not "
        "restored, or not exactly"
    ),
    FactCode.BUFFERS_DIFFER: lambda *arguments: _differ("buffers", *arguments),
    FactCode.OPTIMIZER_EMPTY: lambda names: (
        f"the optimizer's state is not restored: it has none, where {some_names(names)} were"
    ),
    FactCode.OPTIMIZER_DIFFERS: lambda names, total: (
        f"{len(names)} of {total} values of the optimizer's state are not restored: {some_names(names)}"
    ),
    FactCode.SETTINGS_DIFFER: _settings,
    FactCode.GENERATORS: lambda names, state: f"{generators(names)}: {sentence(state)}",
    FactCode.STATE_LATE: (
        "as at the end of step {}, but the whole run had drawn since: it was restored too late (after the "
        "batch was drawn), or those draws are missing"
    ),
    FactCode.STATE_AT_START: "not restored: as at the start of the script",
    FactCode.STATE_BEFORE_STEP: "not restored: as before step {}",
    FactCode.STATE_OF_NO_STEP: (
        "not restored, or drawn from since: its state matches no step of the whole run"
    ),
    FactCode.VARIABLES: _variables,
    FactCode.VALUE_AT_START: "`{}` is {} as at the start, not {}",
    FactCode.OTHER_CONTENTS: _other_contents,
    FactCode.BATCH_REPEATED: _repeated,
    FactCode.BATCHES_SKIPPED: _skipped,
    FactCode.BATCH_MOVED: lambda got, due, is_changed: (
        f"the batch is {_position(got)}, where {_position(due)} was due{_too(is_changed)}"
    ),
    FactCode.SAMPLES_CHANGED: lambda numbers: (
        f"the samples are those that were due ({_samples(numbers)}), but their contents differ: the data set "
        "or its transforms draw different values"
    ),
    FactCode.TENSORS_CHANGED: lambda same, other: (
        f"in the batch, {_tensors(same)} is as due and {_tensors(other)} is not: these are the same samples "
        "with other contents, so the data set or its transforms draw different values"
    ),
    FactCode.OTHER_SAMPLES: _other_samples,
    FactCode.BATCH_UNKNOWN: lambda due: (
        f"the whole run had no such batch ({_position(due)} was due): samples or contents differ"
    ),
    FactCode.BACKWARD_LOST: _backward,
    FactCode.POSITION_SAVED_EARLY: "as if the position was saved before the step and the parameters after it",
    FactCode.POSITION_SAVED_LATE: (
        "as if the parameters were saved before `Optimizer.step` and the position after it"
    ),
    FactCode.WORKERS_REPEAT: _workers,
    FactCode.WORKERS_SEEDED: "the workers' seeds come from there",
    FactCode.ITERATOR_GENERATOR: lambda name: (
        f"when the loader's iterator was made, {generators((name,))} had another state than at the start of "
        "that pass in the whole run"
    ),
}
