"""The exchange of values between runs: one run keeps those of chosen events, another is given them."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from samebits._torch.core import is_virtual
from samebits.recording.probes.captures import fits, from_safetensors, to_safetensors, write_into
from samebits.recording.probes.op_calls import argument_tensors, with_replaced
from samebits.recording.substitution import CapturedEvents, Matcher, line_of
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode, RecordedPart
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from samebits.recording._recorder import Recorder
    from samebits.recording.substitution import CapturedEvent, Rule, Substitution
    from samebits.records.events import Event

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]

# The probes of these kinds ask before they record; the other kinds are only compared.
_OWN_PROBES = (EventKind.OP, EventKind.BATCH, EventKind.RNG)


class Substituter:
    """Keeps the values that the rules name, or replaces them by those that another run kept.

    Args:
        recorder: whose events are watched.
        substitution: the rules, and the record that kept values if this run gets some.

    Attributes:
        ops: names of the ops in the rules.
        shown: numbers of the rules of which this run's own values were kept once.
        seeded: whether a seeding that a rule names was made.
        seeded_from: the state of the CPU generator that the last replaced seeding had left.

    Raises:
        SamebitsError: the record that kept the values cannot be read.
    """

    def __init__(self, recorder: Recorder, substitution: Substitution) -> None:
        self._recorder = recorder
        self.rules = substitution.rules
        self._matcher = Matcher(substitution)
        self._reader = RecordReader(substitution.source) if substitution.source else None
        self._captured = CapturedEvents(self._reader, substitution) if self._reader is not None else None
        self._let_go()
        self._bytes_left = self._most_bytes = substitution.most_bytes
        self._lock = threading.Lock()
        self._tally: Counter[tuple[int, str]] = Counter()
        self.shown: set[int] = set()
        self.seeded_from: Any = None
        self.seeded = False
        self.ops = frozenset(rule.op for rule in self.rules if rule.kind == EventKind.OP)
        self._kinds = frozenset(rule.kind for rule in self.rules if rule.kind not in _OWN_PROBES)

    @property
    def keeps(self) -> bool:
        """True if this run keeps values; else it gets some."""
        return self._captured is None

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Have the other probes ask before they record."""
        self._recorder.set_substituter(self)
        if self._kinds:
            self._recorder.on_tensors.append(self._observe)

    def remove(self) -> None:
        """Have them no longer ask."""
        self._recorder.set_substituter(None)
        if self._kinds:
            self._recorder.on_tensors.remove(self._observe)
        if self._reader is not None:
            self._reader.close()

    def matches(
        self, kind: EventKind, op: str, site: int | None, forward_site: int | None = None
    ) -> list[RuleMatch]:
        """Return the matches of an event that is about to be recorded, one for each rule."""
        sites = self._recorder.sites
        key = (kind, op, line_of(sites.known(site)), line_of(sites.known(forward_site)))
        main = threading.current_thread() is threading.main_thread()
        thread = "" if main else threading.current_thread().name
        with self._lock:
            matched = self._matcher.match(key, thread, self._recorder.step)
        return [
            RuleMatch(self, number, self._captured.get(number, thread, count) if self._captured else None)
            for number, count in matched
        ]

    def digest(self, tensor: Any) -> bytes:
        """Digest a tensor without recording it."""
        with self._recorder.quietly:
            return self._recorder.digest_many([tensor])

    def load(self, captured: CapturedEvent) -> Mapping[int, bytes]:
        """Return the tensors of an event that the other run kept, as safetensors files, by position."""
        try:
            return {} if self._captured is None else self._captured.tensors(captured)
        finally:
            self._let_go()

    def count(self, rule: int, result: str) -> None:
        """Count the result of one event: `placed`, `missing`, `misfit` or `cut`."""
        with self._lock:
            self._tally[rule, result] += 1

    def reserve(self, size: int) -> bool:
        """Count bytes that are to be kept; False where they are too many, and from then on."""
        with self._lock:
            self._bytes_left = self._bytes_left - size if self._bytes_left >= size else -1
            return self._bytes_left >= 0

    def recorded(self, seq: int, matches: Sequence[RuleMatch]) -> None:
        """Write the kept tensors of an event that has a number now, each tensor once."""
        contents: dict[int, bytes] = {}
        for match in matches:
            contents.update(match.contents)
        for position, data in contents.items():
            self._recorder.writer.capture([(seq, position, data)])

    def notes(self) -> list[Note]:
        """Return notes for the user: values that were not kept, or not put in place."""
        notes = []
        cut = sum(self._tally[number, "cut"] for number in range(len(self.rules)))
        if cut:
            notes.append(Note.of(NoteCode.NO_SPACE, str(self._most_bytes >> 20), str(cut)))
        for number, rule in enumerate(self.rules):
            placed, missing, misfit = (
                self._tally[number, result] for result in ("placed", "missing", "misfit")
            )
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

    def _observe(
        self, seq: int, kind: EventKind, op: str, site: int | None, tensors: Sequence[tuple[int, Any]]
    ) -> None:
        if kind in self._kinds:
            with self._recorder.recording(RecordedPart.CAPTURED_VALUE):
                matches = self.matches(kind, op, site)
                for match in matches:
                    match.exchange(dict(tensors))
                self.recorded(seq, matches)


class RuleMatch:
    """An event that a rule matches: its values are kept, or replaced by those of the other run.

    Args:
        substituter: the run's substituter.
        number: of the rule.
        captured: the event of the other run whose values are put in place; None for none.

    Attributes:
        contents: the kept tensors of the event, as safetensors files, by position.
    """

    def __init__(self, substituter: Substituter, number: int, captured: CapturedEvent | None) -> None:
        self.substituter = substituter
        self.rule_number = number
        self.rule: Rule = substituter.rules[number]
        self._captured = captured
        self.contents: dict[int, bytes] = {}

    @property
    def keeps(self) -> bool:
        """True if values are only kept."""
        return self.substituter.keeps

    @property
    def measures(self) -> bool:
        """True while this event's own values are still wanted, to tell by how much the runs differ."""
        return self.rule_number not in self.substituter.shown

    def keep(self, tensors: Mapping[int, Any]) -> None:
        """Keep tensors by position."""
        files = {position: to_safetensors(tensor) for position, tensor in tensors.items()}
        contents = {position: data for position, data in files.items() if data is not None}
        if not self.substituter.reserve(sum(map(len, contents.values()))):
            self.substituter.count(self.rule_number, "cut")
            return
        self.contents.update(contents)

    def show(self, tensors: Mapping[int, Any]) -> None:
        """Keep this run's own values of the event, unless those of another event of the rule were kept."""
        if self.measures:
            self.substituter.shown.add(self.rule_number)
            self.keep(tensors)

    def exchange(self, tensors: Mapping[int, Any], *, show: bool = True) -> dict[int, Any]:
        """Keep tensors, or have them replaced.

        Args:
            tensors: by position in the event.
            show: keep this run's own values if they are the first of the rule that differ.

        Returns:
            the contents that are to be put in place, by position; only of tensors that differ.
        """
        if self.substituter.keeps:
            self.keep(tensors)
            return {}
        wanted = self._wanted(tensors)
        if wanted and show:
            self.show(tensors)
        return wanted if self.rule.replaces else {}

    def replace(self, tensors: Mapping[int, Any]) -> None:
        """Keep tensors, or overwrite them with the contents that the other run kept."""
        for position, contents in self.exchange(tensors).items():
            write_into(tensors[position], contents)

    def _wanted(self, tensors: Mapping[int, Any]) -> dict[int, Any]:
        if self._captured is None:
            self.substituter.count(self.rule_number, "missing")
            return {}
        event, files = self._captured.event, None
        wanted: dict[int, Any] = {}
        misfit = False
        for position, tensor in tensors.items():
            if self.substituter.digest(tensor) == _digest(event, position):
                continue
            files = self.substituter.load(self._captured) if files is None else files
            contents = from_safetensors(files[position]) if position in files else None
            if contents is None or not fits(tensor, contents):
                misfit = True
            elif not self._is_equal_state(tensor, contents):
                wanted[position] = contents
        self.substituter.count(self.rule_number, "misfit" if misfit else "placed")
        return wanted

    def _is_equal_state(self, tensor: Any, contents: Any) -> bool:
        """Compare the states themselves where a seeding has no digests on record."""
        return self.rule.kind == EventKind.RNG and bool((tensor == contents).all())


def _digest(event: Event, position: int) -> bytes:
    return event.digests[position] if position < len(event.digests) else b""


class OpSubstitution:
    """The part that the matching rules take in one call of an op.

    Args:
        matches: of the call, one for each rule.
        op: executes the op.
        listed: gives the tensors that it returned or wrote to, from its result and its arguments.
        arguments: its positional and its keyword arguments.
        quietly: inside, ops are samebits' own.
    """

    def __init__(
        self,
        matches: list[RuleMatch],
        op: Callable[..., Any],
        listed: Callable[[Any, Any, Any], list[Any]],
        arguments: Arguments,
        quietly: AbstractContextManager[None],
    ) -> None:
        self._quietly = quietly
        self._matches = matches
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
            for match in self._matches:
                if match.rule.part == "in":
                    self._give_inputs(match, inputs)
                elif match.rule.part == "state" and generator is not None:
                    self._give_state(match, generator)
                elif match.rule.part == "draw" and match.measures:
                    state = match.substituter.seeded_from
                    if state is not None:
                        self._own[match.rule_number] = (self._copies({}), state)

    def after(self, outcome: Any, first: int) -> Any:
        """Act after the op, and before anything of it is digested.

        Args:
            outcome: what it returned.
            first: position of its first output in the event.

        Returns:
            the result that the script gets.
        """
        if any(is_virtual(tensor) for tensor in self._listed(outcome, *self._arguments)):
            return outcome
        with self._quietly:
            for match in self._matches:
                outputs = dict(enumerate(self._listed(outcome, *self._arguments), first))
                if match.rule.part == "out":
                    outcome = self._put(outcome, outputs, match.exchange(outputs))
                elif match.keeps and (match.rule.part != "draw" or match.substituter.seeded):
                    match.show(outputs)
                elif match.rule_number in self._own:
                    match.show(dict(enumerate(self._own_outputs(*self._own[match.rule_number]), first)))
        return outcome

    def recorded(self, seq: int) -> None:
        """Write the kept tensors of the event, which has a number now."""
        if self._matches:
            self._matches[0].substituter.recorded(seq, self._matches)

    def _give_inputs(self, match: RuleMatch, inputs: list[Any]) -> None:
        chosen = {i: inputs[i] for i in match.rule.positions if i < len(inputs)}
        wanted = match.exchange(chosen, show=False)
        if wanted and match.measures:
            self._own[match.rule_number] = (self._copies(chosen), None)
        for position, contents in wanted.items():
            write_into(chosen[position], contents)

    def _give_state(self, match: RuleMatch, generator: Any) -> None:
        own = generator.get_state()
        for contents in match.exchange({self._n_inputs: own}, show=False).values():
            if match.measures:
                self._own[match.rule_number] = (self._copies({}), own)
            generator.set_state(contents)

    def _copies(self, replaced: dict[int, Any]) -> Arguments:
        """Copy the op's arguments with their tensors, so that it does not write to the script's."""
        copies: Arguments = _copied(self._arguments, itertools.count(), replaced)
        return copies

    def _own_outputs(self, copies: Arguments, state: Any) -> list[Any]:
        """Return the tensors that the op would have given without the values put in place."""
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
        """Put contents in place of outputs; return the result that the script gets."""
        if not wanted:
            return outcome
        given = argument_tensors(*self._arguments)
        bases = {_storage(tensor) for tensor in given}
        fresh: dict[int, Any] = {}
        for position, contents in wanted.items():
            tensor = target = outputs[position]
            if _storage(tensor) in bases and not any(tensor is argument for argument in given):
                # A view of an argument, such as another slice: writing there would change the argument.
                target = fresh[id(tensor)] = tensor.clone()
            write_into(target, contents)
        return with_replaced(outcome, fresh) if fresh else outcome


def _copied(value: Any, numbers: Iterator[int], replaced: Mapping[int, Any]) -> Any:
    """Return nested arguments with each tensor copied.

    Args:
        value: the arguments.
        numbers: counts the tensors, in order.
        replaced: tensors that are copied in place of some, by number.
    """
    if hasattr(type(value), "untyped_storage"):
        return replaced.get(next(numbers), value).clone()
    if type(value) is dict:
        return {key: _copied(item, numbers, replaced) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_copied(item, numbers, replaced) for item in value])
    return value


def _storage(tensor: Any) -> int:
    """Return where the memory of a tensor begins; 0 without one."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):  # sparse
        return 0
