"""The probe that executes each op again on the same inputs and generator states, and compares the bits."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame, pass_on
from samebits._torch.core import is_virtual, node_sequence
from samebits._torch.dispatch_modes import dispatch_mode_class
from samebits._torch.higher_order import is_higher_order, run_by_its_ops
from samebits._torch.schemas import OpTraits, traits_of
from samebits.digest.pending import read
from samebits.errors import SamebitsError
from samebits.recording._recorder import shape_of
from samebits.recording.distance import tensor_difference
from samebits.recording.probes import replay_rules as rules
from samebits.recording.probes.op_calls import (
    FORWARD_SITES,
    WORKSPACES,
    DispatchProbe,
    argument_tensors,
    hide,
)
from samebits.recording.probes.replay_inputs import (
    Copies,
    Cores,
    Generators,
    NotReplayable,
    States,
    results_of,
)
from samebits.recording.probes.replay_rules import CallSite, Deviation, Tally
from samebits.recording.replay_results import SkipReason
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from types import FrameType

    from samebits.recording._recorder import Recorder
    from samebits.recording.distance import Difference
    from samebits.recording.probes.backward import BackwardProbe
    from samebits.recording.probes.modules import ModulePaths
    from samebits.recording.probes.replay_inputs import Call
    from samebits.recording.replay_results import ReplaySummary


@dataclasses.dataclass(frozen=True, slots=True)
class _Attempt:
    """Everything needed to execute a call again, taken before it runs.

    Args:
        traits: of the op.
        tensors: all tensors among the arguments.
        copies: of what it writes to.
        states: of the generators that it may draw from; None when it says that it draws from none.
        inputs: descriptions of its inputs; None when their shapes stay, so that they can be made later.
        untouched: digests of what it should only read; empty where its schema is believed.
    """

    traits: OpTraits
    tensors: list[Any]
    copies: Copies
    states: States | None
    inputs: tuple[str, ...] | None
    untouched: bytes


class ReplayProbe(DispatchProbe):
    """Executes the ops of every thread again.

    The script gets the results of the first execution; generators are left as that one left them.

    Args:
        recorder: its settings say how often.
        modules: knows the path of the module being executed.
        backward: knows whether a backward pass is running.
    """

    def __init__(self, recorder: Recorder, modules: ModulePaths, backward: BackwardProbe) -> None:
        super().__init__(recorder, modules, backward)
        self._tally = Tally(recorder.settings.replay)
        self._known: dict[int, tuple[OpTraits, SkipReason | None, Any]] = {}
        # While one thread puts a generator of torch back, no other may draw from it.
        self._drawing = threading.RLock()
        self._torch: Any = None
        self._generators: Generators | None = None
        self._cores: Any = None

    def install(self, torch: Any) -> None:
        """Watch the ops of this thread."""
        self._torch = torch
        self._generators = Generators(torch)
        self._cores = Cores(torch)
        self.enter(_mode_class(self, torch.Tensor.__torch_dispatch__))

    def summary(self) -> ReplaySummary:
        """Return the results of executing the ops again."""
        return self._tally.summary()

    def call(self, op: Any, call: Call, forward: dict[int, tuple[int | None, str]], frame: FrameType) -> Any:
        """Run an op, then run it again.

        Args:
            op: the overload.
            call: its arguments.
            forward: sites and modules of the forward ops of this thread, by number of their autograd node.
            frame: where it was called.
        """
        recorder = self._recorder
        if not recorder.active or recorder.quietly.depth:
            return op(*call[0], **call[1])
        traits, reason = self._learn(op)
        call_site = self._call_site(traits.name, forward, frame)
        if reason is not None:
            self._tally.skip(reason, traits.name)
            return op(*call[0], **call[1])
        # Not around an op that is not torch's own: it may wait for a thread that draws.
        exclusive = traits.is_random and not rules.is_foreign(traits)
        with self._drawing if exclusive else contextlib.nullcontext():
            attempt = self._prepare(traits, call)
            outcome = op(*call[0], **call[1])
            if attempt is not None:
                self._replay(op, attempt, (outcome, call), call_site)
        return outcome

    def skip(self, op: Any, reason: SkipReason) -> None:
        """Count a call that was not examined."""
        if self._recorder.active and not self._recorder.quietly.depth:
            self._tally.skip(reason, self._learn(op)[0].name)

    def _learn(self, op: Any) -> tuple[OpTraits, SkipReason | None]:
        known = self._known.get(id(op))
        if known is None:
            traits = traits_of(op)
            # With the op itself, so that no other gets its identity.
            known = self._known[id(op)] = (traits, rules.reason_to_skip(traits), op)
        return known[0], known[1]

    def _call_site(self, name: str, forward: dict[int, tuple[int | None, str]], frame: FrameType) -> CallSite:
        recorder, stack = self._recorder, self._modules.stack()
        site = recorder.sites.find(frame)
        module = self._modules.path(stack[-1]) if stack else ""
        forward_site = None
        node = self._node() if self._backward.running else None
        if node is None:
            if len(forward) > FORWARD_SITES:
                forward.clear()
            forward.setdefault(self._peek() - 1, (site, module))
        else:
            forward_site, module = forward.get(node_sequence(node), (None, module))
        known = recorder.sites.known
        return CallSite(name, module, known(site), known(forward_site))

    def _prepare(self, traits: OpTraits, call: Call) -> _Attempt | None:
        """Return everything that one more execution of a call needs; None when there is to be none."""
        try:
            with self._recorder.quietly:
                return self._attempt(traits, call)
        except NotReplayable as refusal:
            self._tally.skip(refusal.reason, traits.name)
        except Exception as error:  # noqa: BLE001 - an error of ours, or no memory: the script goes on
            pass_on(error)
            self._fail(traits, error)
        return None

    def _attempt(self, traits: OpTraits, call: Call) -> _Attempt:
        tensors = argument_tensors(*call)
        if any(is_virtual(tensor) for tensor in tensors):
            raise NotReplayable(SkipReason.SUBCLASS)
        if any(tensor.is_cuda for tensor in tensors) and self._torch.cuda.is_current_stream_capturing():
            raise NotReplayable(SkipReason.CAPTURING)
        foreign = rules.is_foreign(traits)
        states, untouched, generators = None, b"", self._generators
        assert generators is not None  # noqa: S101 - set by `install`, and nothing calls before it
        if foreign:
            states = generators.everywhere(call, tensors)
            untouched = self._only_read(traits, tensors, call)
        elif traits.is_random:
            states = generators.of(call, tensors)
        copies = Copies(self._torch, traits, call)
        inputs = tuple(map(_described, tensors)) if traits.keywords or foreign else None
        return _Attempt(traits, tensors, copies, states, inputs, untouched)

    def _only_read(self, traits: OpTraits, tensors: list[Any], call: Call) -> bytes:
        """Digest the arguments of a foreign op that do not share memory with one that it writes to."""
        written = {_memory(tensor) for tensor in results_of(traits, None, call)}
        return self._recorder.digest_many([tensor for tensor in tensors if _memory(tensor) not in written])

    def _replay(self, op: Any, attempt: _Attempt, ran: tuple[Any, Call], call_site: CallSite) -> None:
        """Execute a call again and count the result; nothing of it reaches the script."""
        traits, states = attempt.traits, attempt.states
        outcome, call = ran
        try:
            with self._recorder.quietly:
                outputs = results_of(traits, outcome, call)
                self._check(attempt, call, outputs)
                self._wait(attempt.tensors, outputs)
                expected = self._values(traits, outputs)
                if states is not None:
                    states.note_after()
                try:
                    deviation = self._compare(op, attempt, outputs, expected)
                finally:
                    if states is not None:
                        states.as_after()
                step = self._recorder.step
                self._tally.count(call_site, step)
                if deviation is not None:
                    self._tally.differs(call_site, step, deviation)
        except NotReplayable as refusal:
            self._tally.skip(refusal.reason, traits.name)
        except SamebitsError:
            self._tally.skip(SkipReason.UNREADABLE, traits.name)
        except Exception as error:  # noqa: BLE001 - nor one of the op itself
            pass_on(error)
            self._fail(traits, error)

    def _values(self, traits: OpTraits, outputs: list[Any]) -> bytes:
        """Digest results; scratch memory among them holds no values."""
        return read(hide(self._recorder.digest_many(outputs), WORKSPACES.get(traits.base, ())))

    def _check(self, attempt: _Attempt, call: Call, outputs: list[Any]) -> None:
        """Reject a call whose results have no memory, or that wrote where its schema denies it."""
        if any(is_virtual(output) for output in outputs):
            raise NotReplayable(SkipReason.SUBCLASS)
        if attempt.untouched and self._only_read(attempt.traits, attempt.tensors, call) != attempt.untouched:
            raise NotReplayable(SkipReason.UNDECLARED)

    def _compare(self, op: Any, attempt: _Attempt, outputs: list[Any], expected: bytes) -> Deviation | None:
        """Execute a call again and return the difference of any repetition."""
        times, states = self._recorder.settings.replay, attempt.states
        foreign = rules.is_foreign(attempt.traits)
        differing, example, moved = 0, None, False
        for number in range(times):
            call = attempt.copies.restored(last=number == times - 1)
            if states is not None:
                states.as_before()
            with contextlib.nullcontext() if foreign else self._cores.another(attempt.traits.base):
                outcome = op(*call[0], **call[1])
            again = results_of(attempt.traits, outcome, call)
            self._wait(attempt.tensors, again)
            digests = self._values(attempt.traits, again)
            apart = states is not None and not states.are_as_after()
            if digests != expected or apart:
                differing += 1
                moved |= apart
                if digests != expected and example is None:
                    example = (_unequal(expected, digests), again)
        if not differing:
            return None
        positions, last = example if example is not None else ([], [])
        shown = [outputs[position] for position in positions if position < len(outputs)]
        return Deviation(
            differing=differing,
            inputs=tuple(map(_described, attempt.tensors)) if attempt.inputs is None else attempt.inputs,
            outputs=tuple(map(_described, shown)),
            device=outputs[0].device.type if outputs else "cpu",
            only_generator=example is None,
            measure=lambda: _distance(outputs, last, positions),
        )

    def _wait(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Wait for a copy to the CPU that may still be on its way."""
        if any(t.is_cuda for t in inputs) and any(not t.is_cuda for t in outputs):
            self._torch.cuda.current_stream().synchronize()

    def _fail(self, traits: OpTraits, error: Exception) -> None:
        self._tally.skip(SkipReason.FAILED, traits.name, type(error).__name__)
        self._recorder.failures.add(RecordedPart.REPETITION, error, traits.name)


def _unequal(a: bytes, b: bytes) -> list[int]:
    """Return the positions of the digests that differ."""
    return [i // 16 for i in range(0, max(len(a), len(b)), 16) if a[i : i + 16] != b[i : i + 16]]


def _distance(outputs: list[Any], again: list[Any], positions: list[int]) -> Difference | None:
    """Return how far the first tensors that differ are apart; None where that cannot be told."""
    for position in positions:
        if position < min(len(outputs), len(again)):
            try:
                return tensor_difference(outputs[position], again[position])
            except (ValueError, RuntimeError, NotImplementedError, TypeError):  # shapes, layouts
                return None
    return None


def _memory(tensor: Any) -> object:
    try:
        return tensor.untyped_storage().data_ptr() or id(tensor)
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def _described(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(shape_of(tensor))}"


def _mode_class(probe: ReplayProbe, plain: Any) -> type[Any]:
    """Return the dispatch mode of one thread.

    Args:
        probe: gets every op.
        plain: the `__torch_dispatch__` of classes of tensors that have none of their own.
    """

    class ReplayMode(dispatch_mode_class()):  # type: ignore[misc]
        """Hands every op of one thread to the probe."""

        def __init__(self) -> None:
            super().__init__()
            self.forward: dict[int, tuple[int | None, str]] = {}

    def dispatch(
        mode: ReplayMode,
        op: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        call = (args, kwargs or {})
        if types:  # a tensor among the arguments may be of a class with a dispatch of its own
            tensors = argument_tensors(*call)
            if any(is_virtual(tensor) for tensor in tensors):
                probe.skip(op, SkipReason.SUBCLASS)
                return op(*args, **call[1])
            if any(type(tensor).__torch_dispatch__ is not plain for tensor in tensors):
                probe.skip(op, SkipReason.SUBCLASS)
                return NotImplemented  # torch calls that dispatch: the ops inside it come here
        if is_higher_order(op):
            return run_by_its_ops(op, *call, mode)
        return probe.call(op, call, mode.forward, calling_frame())

    # Set afterwards: a method of the class body would be wrapped in a switch for torch.compile, which is off.
    ReplayMode.__torch_dispatch__ = dispatch
    return ReplayMode
