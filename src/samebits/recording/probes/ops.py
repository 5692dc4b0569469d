"""The probe that records every op that torch dispatches: inputs, outputs, scalars, site and module."""

from __future__ import annotations

import dataclasses
import functools
import struct
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame, pass_on
from samebits._torch.core import (
    is_opaque,
    is_virtual,
    node_sequence,
)
from samebits._torch.dispatch_modes import dispatch_mode_class
from samebits._torch.higher_order import is_higher_order, run_by_its_ops
from samebits._torch.unseen import foreign_modes
from samebits.digest import digest_many
from samebits.digest.tensors import kinds_in
from samebits.recording.probes.contents import Contents
from samebits.recording.probes.op_calls import (
    FORWARD_SITES,
    DispatchProbe,
    OpSpec,
    argument_tensors,
    flatten_arguments,
    flatten_outputs,
    generator_of,
    hide,
    name_of,
    spec_of,
    with_written,
    written_arguments,
    written_tensors,
)
from samebits.recording.probes.op_rows import OpRows, ThreadState, infos_of
from samebits.recording.probes.substitution import OpSubstitution
from samebits.records.events import NO_WRITER
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from samebits._reader import Calls
    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.backward import BackwardProbe
    from samebits.recording.probes.contents import Observed
    from samebits.recording.probes.modules import ModulePaths
    from samebits.recording.probes.op_calls import Memory
    from samebits.recording.probes.substitution import Substituter

    # What was seen of an op: tensors in (or their descriptions), tensors out, digests of all, their kinds,
    # storages in, storages out.
    Seen = tuple[list[Any], list[Any], Digests, bytes, bytes, bytes]
    # What the C module gives before an op: inputs, those it writes to, text, what was observed, marks.
    Begun = tuple[list[Any], list[Any], str, Observed, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class _Before:
    """What is known before an op runs.

    Args:
        substitution: of some of its tensors; None in most runs.
        source: the RNG source that it draws from, or empty.
        state: the digest of that generator, or empty.
        trusted: whether it writes only to what its schema says.
        inputs: its tensors, or their descriptions as they were before.
        written: those that it writes to.
        seen: what `Contents.begin` said of the inputs; None if it writes to none.
    """

    substitution: OpSubstitution | None
    source: str
    state: bytes
    trusted: bool
    inputs: list[Any]
    written: list[Any]
    seen: tuple[Observed, bytes] | None


class OpProbe(DispatchProbe):
    """Records an `op` event for every op of every thread, from `first_op_step` on.

    Args:
        recorder: where events go.
        memory: finds which event wrote a tensor last.
        modules: knows the path of the module being executed.
        backward: knows whether a backward pass is running.
    """

    def __init__(
        self, recorder: Recorder, memory: Memory, modules: ModulePaths, backward: BackwardProbe
    ) -> None:
        super().__init__(recorder, modules, backward)
        self._memory = memory
        # What is substituted, is written beside the ops that are seen.
        self._contents = Contents(reads_all=recorder.settings.substitution is not None)
        self._calls = self._contents.calls(memory, recorder.next_seq, name_of)
        self._foreign_modes = foreign_modes()
        self._specs: dict[int, tuple[OpSpec, Any]] = {}
        self._rows = OpRows(recorder, modules, backward)
        self._first_step = recorder.settings.first_op_step
        self._torch: Any = None
        self._tensor: Any = None
        self._substituter: Substituter | None = None
        self._substituted: frozenset[str] = frozenset()

    def install(self, torch: Any) -> None:
        """Watch the ops of this thread."""
        self._torch, self._tensor = torch, torch.Tensor
        self._substituter = self._recorder.substituter
        if self._substituter is not None:
            self._substituted = self._substituter.ops
        self._contents.install(torch)
        self.enter(_mode_class(self))

    def remove(self) -> None:
        """Watch nothing."""
        super().remove()
        self._contents.remove()

    def thread_state(self) -> ThreadState:
        """Return the facts of the thread that calls this."""
        return ThreadState({}, self._modules.stack(), self._recorder.thread())

    def call(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], thread: ThreadState) -> Any:
        """Run an op and record it.

        Args:
            op: the overload.
            args: its positional arguments.
            kwargs: its keyword arguments.
            thread: the facts of the running thread.
        """
        recorder = self._recorder
        spec, _ = self._specs.get(id(op)) or self._learn(op)
        early = recorder.steps.count < self._first_step
        if not recorder.active or spec.ignored or early or recorder.quietly.depth:
            return self.call_unseen(op, args, kwargs, spec)
        if spec.at_once and self._calls and not recorder.on_tensors and not self._foreign_modes():
            return self._call_at_once(self._calls, spec, op, (args, kwargs), thread)
        return self._call_in_parts(spec, op, args, kwargs, thread)

    def _call_at_once(
        self, calls: Calls, spec: OpSpec, op: Any, call: tuple[Any, Any], thread: ThreadState
    ) -> Any:
        """Run and record an op, seen by the C module as a whole unless it cannot read one of its tensors."""
        args, kwargs = call
        begun = None
        if spec.writes:
            try:
                begun = calls.begin(call, (spec.positions, spec.keywords))
            except Exception as error:  # noqa: BLE001 - an error of ours does not end the script
                pass_on(error)
            if begun is None:
                return self._call_in_parts(spec, op, args, kwargs, thread)
        outcome = op(*args, **kwargs)
        try:
            if begun is None:
                row = calls.observe(args, kwargs, outcome, spec.births, spec.flags, spec.alias)
            else:
                row = calls.finish(begun, outcome, spec.births, spec.flags)
            if row is None:
                self._record_rest(spec, call, begun, outcome, thread)
            else:
                seq, key, digests, links, text = row
                layout = self._rows.layout_of(spec, key)
                self._rows.add(spec, thread, calling_frame(3), (seq, layout, digests, links, text))
        except Exception as error:  # noqa: BLE001 - nor one after it
            pass_on(error)
            self._recorder.failures.add(RecordedPart.OPERATION, error)
        return outcome

    def _record_rest(
        self, spec: OpSpec, call: tuple[Any, Any], begun: Begun | None, outcome: Any, thread: ThreadState
    ) -> None:
        """Record an op that has run, of which the C module could not see everything."""
        if begun is not None:
            _, written, text, (digests, kinds, bases), _ = begun  # `finish` has ended the marks
            observed = (digests, kinds, bases), b""
            infos = infos_of(Role.IN, kinds_in(kinds))
            before = _Before(None, "", b"", trusted=True, inputs=infos, written=written, seen=observed)
            seen = self._seen_around(spec, before, observed, with_written(outcome, written))
            self._record(spec, seen, text, thread, "")
            return
        args, kwargs = call
        inputs: list[Any] = []
        others: list[Any] = []
        flatten_arguments((*args, *kwargs.values()), inputs, others)
        returned = self._returned(outcome)
        if returned is not None:
            if not returned and outcome is not None:
                others.append(("->", outcome))
            seen = self._seen_after(spec, inputs, returned)
            self._record(spec, seen, repr(others)[1:-1] if others else "", thread, "")

    def _call_in_parts(
        self, spec: OpSpec, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], thread: ThreadState
    ) -> Any:
        recorder = self._recorder
        inputs: list[Any] = []
        others: list[Any] = []
        flatten_arguments(args, inputs, others)
        if kwargs:
            flatten_arguments(kwargs.values(), inputs, others)
        before = None
        if spec.special or spec.text in self._substituted or self._foreign_modes():
            before = self._before(spec, thread, op, (args, kwargs), inputs)
            if before is None:
                return self.call_unseen(op, args, kwargs, None)
        outcome = op(*args, **kwargs)
        try:
            if before is None:
                outputs, source = self._returned(outcome), ""
                seen = None if outputs is None else self._seen_after(spec, inputs, outputs)
            else:
                outcome, seen, source = self._after(before, spec, inputs, outcome)
            if seen is None:
                return outcome
            if not seen[1] and outcome is not None:
                others.append(("->", outcome))
            seq = self._record(spec, seen, repr(others)[1:-1], thread, source)
            if before is not None and before.substitution is not None:
                before.substitution.recorded(seq)
        except Exception as error:  # noqa: BLE001 - an error of ours does not end the script
            pass_on(error)
            recorder.failures.add(RecordedPart.OPERATION, error)
        return outcome

    def _before(
        self, spec: OpSpec, thread: ThreadState, op: Any, arguments: tuple[Any, Any], inputs: list[Any]
    ) -> _Before | None:
        """Prepare for an op that is special, or runs above another mode; None if that fails."""
        trusted = spec.trusted and not self._foreign_modes()
        substitution, source, state, described, written, seen = None, "", b"", inputs, [], None
        try:
            if not trusted:
                self._contents.distrust(inputs)
            if spec.random or spec.text in self._substituted:
                substitution, source, state = self._prepare(spec, thread, op, arguments, inputs)
            if spec.writes:
                written = written_arguments(spec, *arguments)
                seen = self._contents.begin(inputs, written)
                described = self._rows.described_before(spec, seen[0][1], inputs)
        except Exception as error:  # noqa: BLE001 - nor one before it
            pass_on(error)
            self._recorder.failures.add(RecordedPart.OPERATION, error)
            return None
        return _Before(substitution, source, state, trusted, described, written, seen)

    def _after(
        self, before: _Before, spec: OpSpec, inputs: list[Any], outcome: Any
    ) -> tuple[Any, Seen | None, str]:
        """Return the outcome of such an op, what was seen of it, and its RNG source."""
        if not before.trusted:
            self._contents.forget()
        if before.substitution is not None:
            outcome = before.substitution.after(outcome, len(inputs) + spec.random)
        if before.seen is not None:
            outputs = with_written(outcome, before.written)
            return outcome, self._seen_around(spec, before, before.seen, outputs), before.source
        returned = self._returned(outcome)
        seen = None if returned is None else self._seen_after(spec, inputs, returned, before)
        return outcome, seen, before.source

    def call_unseen(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spec: OpSpec | None) -> Any:
        """Run an op without recording it: what it may have written is not known any more.

        Args:
            op: the overload.
            args: its positional arguments.
            kwargs: its keyword arguments.
            spec: what is known of it; None if that is of no use.
        """
        if spec is not None and spec.trusted and not spec.writes:
            return op(*args, **kwargs)
        try:
            if spec is None or not spec.trusted:  # a collective writes after it has returned
                self._contents.distrust(argument_tensors(args, kwargs))
            return op(*args, **kwargs)
        finally:
            self._contents.forget()

    def call_higher_order(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        """Run a higher-order op: the ops that it consists of are recorded, as far as a mode can see them.

        Args:
            op: such as `flex_attention`.
            args: its positional arguments.
            kwargs: its keyword arguments.
            mode: that torch called with it.
        """

        def run(*args: Any, **kwargs: Any) -> Any:
            return run_by_its_ops(op, args, kwargs, mode)

        return self.call_unseen(run, args, kwargs, None)

    def _learn(self, op: Any) -> tuple[OpSpec, Any]:
        # Keyed by identity, since an overload's hash is computed in Python; held, so that none other gets it.
        learned = self._specs[id(op)] = spec_of(op, self._recorder.writer.text), op
        return learned

    def _returned(self, outcome: Any) -> list[Any] | None:
        """Return the tensors that an op returned; None where one has no contents."""
        if type(outcome) is self._tensor:
            return [outcome]
        outputs = flatten_outputs(outcome)
        if any(type(out) is not self._tensor and is_virtual(out) for out in outputs):
            return None
        return outputs

    def _prepare(
        self, spec: OpSpec, thread: ThreadState, op: Any, arguments: tuple[Any, Any], inputs: list[Any]
    ) -> tuple[OpSubstitution | None, str, bytes]:
        """Return the substitution at an op, the RNG source of the op and the digest of its state."""
        source, generator = generator_of(self._torch, arguments[1], inputs) if spec.random else ("", None)
        substitution = None
        if self._substituter is not None and spec.text in self._substituted:
            site, forward_site = self._recorder.sites.find(calling_frame(3)), None
            node = self._node() if self._backward.running else None
            if node is not None:
                forward_site, _ = thread.forward.get(node_sequence(node), (None, 0))
            matches = self._substituter.matches(EventKind.OP, spec.text, site, forward_site)
            listed = functools.partial(written_tensors, spec)
            substitution = OpSubstitution(matches, op, listed, arguments, self._recorder.quietly)
            substitution.before(inputs, generator)
        if not spec.random:
            return substitution, source, b""
        thread.drawn_from[:] = [] if generator is None else [generator.get_state()]
        return substitution, source, digest_many(thread.drawn_from) if thread.drawn_from else bytes(16)

    def _record(self, spec: OpSpec, seen: Seen, text: str, thread: ThreadState, source: str) -> int:
        recorder = self._recorder
        inputs, outputs, digests, kinds, bases_in, bases_out = seen
        seq = recorder.next_seq()
        links = self._memory.op_links(seq, bases_in, bases_out, spec.flags)
        layout = self._rows.layout(spec, kinds, (inputs, outputs), source)
        site = self._rows.add(spec, thread, calling_frame(4), (seq, layout, digests, links, text))
        if recorder.on_tensors:
            shown = [*enumerate(outputs, len(inputs) + spec.random), *_entering(spec, inputs, links)]
            if spec.random:
                shown += [(len(inputs), state) for state in thread.drawn_from]
            for listener in recorder.on_tensors:
                listener(seq, EventKind.OP, spec.text, site, shown)
        return seq

    def _seen_around(
        self, spec: OpSpec, before: _Before, seen: tuple[Observed, bytes], outputs: list[Any]
    ) -> Seen:
        """Combine the observations before and after an op that wrote to its arguments."""
        (digests, kinds, bases), _ = seen
        births = spec.births and before.trusted
        after, more_kinds, more_bases = self._contents.finish(outputs, before.written, seen, births=births)
        after = hide(after, spec.workspaces) if spec.workspaces else after
        if spec.source and len(before.inputs) == len(outputs):
            digests = after  # the values came from outside, not from what the tensor held
        return before.inputs, outputs, digests + before.state + after, kinds + more_kinds, bases, more_bases

    def _seen_after(
        self, spec: OpSpec, inputs: list[Any], outputs: list[Any], before: _Before | None = None
    ) -> Seen:
        """Observe inputs and outputs at once, after an op that left its inputs unchanged."""
        n = len(inputs)
        if spec.alias:
            digests, kinds, bases = self._contents.observe(inputs, n, births=False)
            return inputs, outputs, digests + digests, kinds, bases, bases
        births = spec.births and (before is None or before.trusted)
        digests, kinds, bases = self._contents.observe(inputs + outputs, n, births=births)
        if spec.workspaces or spec.workspaces_read:
            read = (i + n if i < 0 else i for i in spec.workspaces_read)
            digests = hide(digests, [*read, *(n + i for i in spec.workspaces)])
        if before is not None and before.state:
            digests = digests[: 16 * n] + before.state + digests[16 * n :]
        return inputs, outputs, digests, kinds, bases[: 8 * n], bases[8 * n :]


def _entering(spec: OpSpec, inputs: list[Any], links: bytes) -> list[tuple[int, Any]]:
    """Return the inputs that no recorded event wrote, by position; none for an op that writes to them."""
    if spec.writes:
        return []
    writers = [writer for _, writer in struct.iter_unpack("<ii", links)]
    return [(i, tensor) for i, tensor in enumerate(inputs) if writers[i] == NO_WRITER]


def _mode_class(probe: OpProbe) -> type[Any]:
    class OpMode(dispatch_mode_class()):  # type: ignore[misc]
        """Hands every op of one thread to the probe."""

        def __init__(self) -> None:
            super().__init__()
            self.thread = probe.thread_state()

    call = probe.call
    nothing: dict[str, Any] = {}

    def dispatch(
        mode: OpMode, op: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if types:  # a tensor among the arguments, also in a list, is of a class with a dispatch of its own
            tensors: list[Any] = []
            flatten_arguments((*args, *(kwargs or nothing).values()), tensors, [])
            if any(is_virtual(tensor) for tensor in tensors):
                return probe.call_unseen(op, args, kwargs or nothing, None)
            if any(is_opaque(tensor) for tensor in tensors):
                return NotImplemented  # torch calls that dispatch: the ops inside it are recorded
        if is_higher_order(op):
            return probe.call_higher_order(op, args, kwargs or nothing, mode)
        thread = mode.thread
        if len(thread.forward) > FORWARD_SITES:
            thread.forward.clear()
        return call(op, args, kwargs or nothing, thread)

    # Set afterwards: a method of the class body would be wrapped in a switch for torch.compile, which is off.
    OpMode.__torch_dispatch__ = dispatch
    return OpMode
