"""The exchange of values between runs: one run keeps those of chosen events, another is given them."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from samebits._torch.core import is_virtual
from samebits.recording.probes.captures import fits, from_safetensors, to_safetensors, write_into
from samebits.recording.substitution import CapturedEvents, Matcher, line_of
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode, RecordedPart
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.recording._recorder import Recorder
    from samebits.recording.substitution import CapturedEvent, Rule, Substitution
    from samebits.records.events import Event

_OWN_PROBES = (
    EventKind.OP,
    EventKind.BATCH,
    EventKind.RNG,
)  # their probes ask before they record; the other kinds are only compared


class Substituter:
    """One run's share in a substitution.

    Args:
        recorder: whose events are watched.
        substitution: what is kept or put in place.

    Attributes:
        ops: names of the ops in the rules.
        seeded_from: the state of the CPU generator that the last replaced seeding had left.

    Raises:
        SamebitsError: the record that kept the values cannot be read.
    """

    def __init__(self, recorder: Recorder, substitution: Substitution) -> None:
        self._recorder = recorder
        self.rules = substitution.rules
        self._matcher = Matcher(substitution)
        self._reader = RecordReader(substitution.source) if substitution.source else None
        self._kept = CapturedEvents(self._reader, substitution) if self._reader is not None else None
        self._let_go()
        self._bytes_left = self._most_bytes = substitution.most_bytes
        self._turn = threading.Lock()
        self._tally: Counter[tuple[int, str]] = Counter()
        self.shown: set[int] = set()
        self.seeded_from: Any = None
        self.seeded = False
        self.ops = frozenset(rule.op for rule in self.rules if rule.kind == EventKind.OP)
        self._kinds = frozenset(rule.kind for rule in self.rules if rule.kind not in _OWN_PROBES)

    @property
    def keeps(self) -> bool:
        """True if this run keeps values; else it gets some."""
        return self._kept is None

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Take part in what the other probes record."""
        self._recorder.substitute_by(self)
        if self._kinds:
            self._recorder.on_tensors.append(self._see)

    def remove(self) -> None:
        """Take no part."""
        self._recorder.substitute_by(None)
        if self._kinds:
            self._recorder.on_tensors.remove(self._see)
        if self._reader is not None:
            self._reader.close()

    def turns(
        self, kind: EventKind, op: str, site: int | None, forward_site: int | None = None
    ) -> list[Turn]:
        """Return the turns of an event that is about to be recorded, one for each rule."""
        sites = self._recorder.sites
        key = (kind, op, line_of(sites.known(site)), line_of(sites.known(forward_site)))
        main = threading.current_thread() is threading.main_thread()
        thread = "" if main else threading.current_thread().name
        with self._turn:
            matched = self._matcher.match(key, thread, self._recorder.step)
        return [
            Turn(self, number, self._kept.get(number, thread, count) if self._kept else None)
            for number, count in matched
        ]

    def digest(self, tensor: Any) -> bytes:
        """Digest a tensor without recording it."""
        with self._recorder.quietly:
            return self._recorder.digest_many([tensor])

    def load(self, kept: CapturedEvent) -> Mapping[int, bytes]:
        """Return what the other run kept of an event."""
        try:
            return {} if self._kept is None else self._kept.tensors(kept)
        finally:
            self._let_go()

    def count(self, rule: int, what: str) -> None:
        """Note what came of an event: `placed`, `missing`, `misfit` or `cut`."""
        with self._turn:
            self._tally[rule, what] += 1

    def fits_in(self, size: int) -> bool:
        """Tell whether so many more bytes may be kept; once they may not, nothing more is kept."""
        with self._turn:
            self._bytes_left = self._bytes_left - size if self._bytes_left >= size else -1
            return self._bytes_left >= 0

    def recorded(self, seq: int, turns: Sequence[Turn]) -> None:
        """Write what was kept of an event that has a number now, each tensor once."""
        contents: dict[int, bytes] = {}
        for turn in turns:
            contents.update(turn.contents)
        for position, data in contents.items():
            self._recorder.writer.capture([(seq, position, data)])

    def notes(self) -> list[Note]:
        """Return what the user should know of the substitution."""
        notes = []
        cut = sum(self._tally[number, "cut"] for number in range(len(self.rules)))
        if cut:
            notes.append(Note.of(NoteCode.NO_SPACE, str(self._most_bytes >> 20), str(cut)))
        for number, rule in enumerate(self.rules):
            placed, missing, misfit = (self._tally[number, w] for w in ("placed", "missing", "misfit"))
            if missing or misfit:
                counts = str(missing + misfit), str(placed + missing + misfit)
                why = "both" if missing and misfit else "missing" if missing else "misfit"
                line = f"{rule.file}:{rule.line}"
                notes.append(Note.of(NoteCode.NOT_PLACED, *counts, rule.op, line, why))
        return notes

    def _let_go(self) -> None:
        """Hold no descriptor between two reads: the script may close it, and open a file of its own."""
        if self._reader is not None:
            self._reader.let_go()

    def _see(
        self, seq: int, kind: EventKind, op: str, site: int | None, tensors: Sequence[tuple[int, Any]]
    ) -> None:
        if kind in self._kinds:
            with self._recorder.recording(RecordedPart.CAPTURED_VALUE):
                turns = self.turns(kind, op, site)
                for turn in turns:
                    turn.exchange(dict(tensors))
                self.recorded(seq, turns)


class Turn:
    """The work of one rule at one event.

    Args:
        owner: the run's substituter.
        number: of the rule.
        kept: the event of the other run whose values are put in place; None for none.

    Attributes:
        contents: what is kept of the event, as safetensors files, by position.
    """

    def __init__(self, owner: Substituter, number: int, kept: CapturedEvent | None) -> None:
        self.owner = owner
        self.rule_number = number
        self.rule: Rule = owner.rules[number]
        self._kept = kept
        self.contents: dict[int, bytes] = {}

    @property
    def keeps(self) -> bool:
        """True if values are only kept."""
        return self.owner.keeps

    @property
    def measures(self) -> bool:
        """True while this event's own values are still wanted, to tell by how much the runs differ."""
        return self.rule_number not in self.owner.shown

    def keep(self, tensors: Mapping[int, Any]) -> None:
        """Keep tensors by position."""
        files = {position: to_safetensors(tensor) for position, tensor in tensors.items()}
        contents = {position: data for position, data in files.items() if data is not None}
        if not self.owner.fits_in(sum(map(len, contents.values()))):
            self.owner.count(self.rule_number, "cut")
            return
        self.contents.update(contents)

    def show(self, tensors: Mapping[int, Any]) -> None:
        """Keep what this event gave by itself, if no event of the rule was kept for that yet."""
        if self.measures:
            self.owner.shown.add(self.rule_number)
            self.keep(tensors)

    def exchange(self, tensors: Mapping[int, Any], *, show: bool = True) -> dict[int, Any]:
        """Keep tensors, or have them replaced.

        Args:
            tensors: by position in the event.
            show: keep this run's own values if they are the first of the rule that differ.

        Returns:
            the contents that are to be put in place, by position; only of tensors that differ.
        """
        if self.owner.keeps:
            self.keep(tensors)
            return {}
        wanted = self._wanted(tensors)
        if wanted and show:
            self.show(tensors)
        return wanted if self.rule.replaces else {}

    def replace(self, tensors: Mapping[int, Any]) -> None:
        """Keep tensors, or write to them what the other run kept of them."""
        for position, contents in self.exchange(tensors).items():
            write_into(tensors[position], contents)

    def _wanted(self, tensors: Mapping[int, Any]) -> dict[int, Any]:
        if self._kept is None:
            self.owner.count(self.rule_number, "missing")
            return {}
        event, files = self._kept.event, None
        wanted: dict[int, Any] = {}
        misfit = False
        for position, tensor in tensors.items():
            if self.owner.digest(tensor) == _digest(event, position):
                continue
            files = self.owner.load(self._kept) if files is None else files
            contents = from_safetensors(files[position]) if position in files else None
            if contents is None or not fits(tensor, contents):
                misfit = True
            elif not self._is_equal_state(tensor, contents):
                wanted[position] = contents
        self.owner.count(self.rule_number, "misfit" if misfit else "placed")
        return wanted

    def _is_equal_state(self, tensor: Any, contents: Any) -> bool:
        """Compare the states themselves where a seeding has no digests on record."""
        return self.rule.kind == EventKind.RNG and bool((tensor == contents).all())


def _digest(event: Event, position: int) -> bytes:
    return event.digests[position] if position < len(event.digests) else b""


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class OpTurns:
    """The work of all rules around one op.

    Args:
        turns: by each rule.
        op: executes the op.
        listed: the tensors that it returned or wrote to, from what it returned and its arguments.
        arguments: its positional and its keyword arguments.
        quietly: inside, ops are samebits' own.
    """

    def __init__(
        self,
        turns: list[Turn],
        op: Callable[..., Any],
        listed: Callable[[Any, Any, Any], list[Any]],
        arguments: Arguments,
        quietly: AbstractContextManager[None],
    ) -> None:
        self._quietly = quietly
        self._turns = turns
        self._op = op
        self._listed = listed
        self._arguments = arguments
        self._n_inputs = 0
        self._generator: Any = None
        self._own: dict[int, tuple[Arguments, Any]] = {}

    def before(self, inputs: list[Any], generator: Any) -> None:
        """Act before the op, and before anything of it is digested.

        Args:
            inputs: its tensors.
            generator: that it draws from, if it does.
        """
        self._n_inputs, self._generator = len(inputs), generator
        with self._quietly:
            for turn in self._turns:
                if turn.rule.part == "in":
                    self._give_inputs(turn, inputs)
                elif turn.rule.part == "state" and generator is not None:
                    self._give_state(turn, generator)
                elif turn.rule.part == "draw" and turn.owner.seeded_from is not None and turn.measures:
                    self._own[turn.rule_number] = (self._copies({}), turn.owner.seeded_from)

    def after(self, outcome: Any, first: int) -> Any:
        """Act after the op, and before anything of it is digested.

        Args:
            outcome: what it returned.
            first: position of its first output in the event.

        Returns:
            what it is to return.
        """
        if any(is_virtual(tensor) for tensor in self._listed(outcome, *self._arguments)):
            return outcome
        with self._quietly:
            for turn in self._turns:
                outputs = dict(enumerate(self._listed(outcome, *self._arguments), first))
                if turn.rule.part == "out":
                    outcome = self._put(outcome, outputs, turn.exchange(outputs))
                elif turn.keeps and (turn.rule.part != "draw" or turn.owner.seeded):
                    turn.show(outputs)
                elif turn.rule_number in self._own:
                    turn.show(dict(enumerate(self._own_outputs(*self._own[turn.rule_number]), first)))
        return outcome

    def recorded(self, seq: int) -> None:
        """Write what was kept of the event, which has a number now."""
        if self._turns:
            self._turns[0].owner.recorded(seq, self._turns)

    def _give_inputs(self, turn: Turn, inputs: list[Any]) -> None:
        chosen = {i: inputs[i] for i in turn.rule.positions if i < len(inputs)}
        wanted = turn.exchange(chosen, show=False)
        if wanted and turn.measures:
            self._own[turn.rule_number] = (self._copies(chosen), None)
        for position, contents in wanted.items():
            write_into(chosen[position], contents)

    def _give_state(self, turn: Turn, generator: Any) -> None:
        own = generator.get_state()
        for contents in turn.exchange({self._n_inputs: own}, show=False).values():
            if turn.measures:
                self._own[turn.rule_number] = (self._copies({}), own)
            generator.set_state(contents)

    def _copies(self, replaced: dict[int, Any]) -> Arguments:
        """Copy the op's arguments with their tensors, so that what it writes to is not the script's."""
        copies: Arguments = copied(self._arguments, itertools.count(), replaced)
        return copies

    def _own_outputs(self, copies: Arguments, state: Any) -> list[Any]:
        """Return what the op would have given without the values put in place."""
        args, kwargs = copies
        if state is None or self._generator is None:
            return self._listed(self._op(*args, **kwargs), args, kwargs)
        after = self._generator.get_state()
        self._generator.set_state(state)
        try:
            return self._listed(self._op(*args, **kwargs), args, kwargs)
        finally:
            self._generator.set_state(after)

    def _put(self, outcome: Any, outputs: Mapping[int, Any], wanted: Mapping[int, Any]) -> Any:
        """Put contents in place of outputs; give what the op is to return."""
        if not wanted:
            return outcome
        given = list(tensors_of(self._arguments))
        bases = {_storage(tensor) for tensor in given}
        fresh: dict[int, Any] = {}
        for position, contents in wanted.items():
            tensor = target = outputs[position]
            if _storage(tensor) in bases and not any(tensor is argument for argument in given):
                # A view of an argument, such as another slice: writing there would change the argument.
                target = fresh[id(tensor)] = tensor.clone()
            write_into(target, contents)
        return renewed(outcome, fresh) if fresh else outcome


def tensors_of(value: Any) -> Iterator[Any]:
    """Yield the tensors in nested arguments."""
    if hasattr(type(value), "untyped_storage"):
        yield value
    elif type(value) in (list, tuple, dict):
        for item in value.values() if type(value) is dict else value:
            yield from tensors_of(item)


def copied(value: Any, numbers: Iterator[int], replaced: Mapping[int, Any]) -> Any:
    """Return nested arguments with each tensor copied.

    Args:
        value: the arguments.
        numbers: counts the tensors, in order.
        replaced: what is copied in place of some.
    """
    if hasattr(type(value), "untyped_storage"):
        return replaced.get(next(numbers), value).clone()
    if type(value) is dict:
        return {key: copied(item, numbers, replaced) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([copied(item, numbers, replaced) for item in value])
    return value


def renewed(value: Any, fresh: Mapping[int, Any]) -> Any:
    """Return what an op returned, with some tensors replaced, by identity."""
    if type(value) in (list, tuple):
        return type(value)([renewed(item, fresh) for item in value])
    return fresh.get(id(value), value)


def _storage(tensor: Any) -> int:
    """Return where the memory of a tensor begins; 0 without one."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):  # sparse
        return 0
