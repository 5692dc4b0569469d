"""Every op that torch dispatches: its inputs, outputs, scalar arguments, site and module."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from samebits.digest import digest_many, observe
from samebits.recording.events import GIVEN, KINDS, TensorInfo
from samebits.recording.probes.arguments import (
    flatten_arguments,
    flatten_outputs,
    written_tensors,
)
from samebits.recording.probes.op_specs import OpSpec, spec_of
from samebits.recording.recorder import describe
from samebits.torch_private import (
    current_node,
    dispatch_mode_class,
    is_opaque,
    is_virtual,
    node_sequence,
    sequence_peek,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.recording.probes.backward import BackwardProbe
    from samebits.recording.probes.memory import Memory
    from samebits.recording.probes.module_paths import ModulePaths
    from samebits.recording.recorder import Recorder

    # What was seen of an op: tensors in (or their descriptions), tensors out, digests of all, their kinds,
    # storages in, storages out.
    Seen = tuple[list[Any], list[Any], bytes, bytes, bytes, bytes]

_OP = KINDS.index("op")
_FORWARD_SITES = 1 << 18  # forward sites kept for backward passes that come later


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadState:
    """What is known of a thread.

    Args:
        forward: site and module of its forward ops by the number of their autograd node.
        modules: the modules that it executes, outermost first.
        name: text id of its name.
    """

    forward: dict[int, tuple[int | None, int]]
    modules: list[Any]
    name: int


class OpProbe:
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
        self._recorder = recorder
        self._memory = memory
        self._modules = modules
        self._backward = backward
        self._specs: dict[int, tuple[OpSpec, Any]] = {}
        self._layouts: dict[Any, int] = {}
        self._inputs: dict[Any, list[TensorInfo]] = {}
        self._empty = recorder.writer.text("")
        self._first_step = recorder.settings.first_op_step
        self._peek = sequence_peek()
        self._node = current_node()
        self._torch: Any = None
        self._tensor: Any = None
        self._mode_class: type[Any] | None = None
        self._mode: Any = None

    def install(self, torch: Any) -> None:
        """Watch the ops of this thread."""
        self._torch, self._tensor = torch, torch.Tensor
        self._mode_class = _mode_class(self)
        self._mode = self._mode_class()
        self._mode.__enter__()

    def remove(self) -> None:
        """Watch nothing."""
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None

    def in_thread(self, function: Callable[[], Any]) -> Any:
        """Call a function of another thread with its ops watched."""
        if self._mode_class is None or not self._recorder.active:
            return function()
        with self._mode_class():
            return function()

    def thread_state(self) -> ThreadState:
        """What is known of the thread that calls this."""
        return ThreadState({}, self._modules.stack(), self._recorder.thread())

    def call(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], thread: ThreadState) -> Any:
        """Run an op and record it.

        Args:
            op: the overload.
            args: its positional arguments.
            kwargs: its keyword arguments.
            thread: what is known of the running thread.
        """
        recorder = self._recorder
        known = self._specs.get(id(op))
        spec = self._learn(op) if known is None else known[0]
        if not recorder.active or spec.ignored or recorder.step < self._first_step or recorder.quietly.depth:
            return op(*args, **kwargs)
        inputs: list[Any] = []
        others: list[Any] = []
        flatten_arguments(args, inputs, others)
        if kwargs:
            flatten_arguments(kwargs.values(), inputs, others)
        try:
            source, state = self._generator(kwargs, inputs) if spec.random else ("", b"")
            before = observe(inputs) if spec.writes else None
            described = inputs if before is None else self._described_before(spec, before[1], inputs)
        except Exception as error:  # noqa: BLE001 - an error of ours does not end the script
            recorder.failures.add("an operation", error)
            return op(*args, **kwargs)
        outcome = op(*args, **kwargs)
        try:
            if before is not None:
                outputs = written_tensors(spec, outcome, args, kwargs)
                seen = _seen_around(spec, described, outputs, before, state)
            else:
                if type(outcome) is self._tensor:
                    outputs = [outcome]
                else:
                    outputs = flatten_outputs(outcome)
                    if any(type(out) is not self._tensor and is_virtual(out) for out in outputs):
                        return outcome
                seen = _seen_after(spec, inputs, outputs, state)
                if not outputs and outcome is not None:
                    others.append(("->", outcome))
            self._record(spec, seen, repr(others)[1:-1] if others else "", thread, source)
        except Exception as error:  # noqa: BLE001 - nor one after it
            recorder.failures.add("an operation", error)
        return outcome

    def _learn(self, op: Any) -> OpSpec:
        spec = spec_of(op, self._recorder.writer.text)
        # Keyed by identity, since an overload's hash is computed in Python; held, so that none other gets it.
        self._specs[id(op)] = (spec, op)
        return spec

    def _record(self, spec: OpSpec, seen: Seen, text: str, thread: ThreadState, source: str) -> None:
        recorder = self._recorder
        writer = recorder.writer
        inputs, outputs, digests, kinds, bases_in, bases_out = seen
        seq = recorder.next_seq()
        links = self._memory.op_links(seq, bases_in, bases_out, spec.flags)
        key = (spec.name, len(inputs), kinds, source)
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._describe(spec, inputs, outputs, source)
        module = self._modules.text(thread.modules[-1]) if thread.modules else self._empty
        site = recorder.sites.find(sys._getframe(3))
        forward_site = None
        node = self._node() if self._backward.running else None
        if node is None:
            thread.forward.setdefault(self._peek() - 1, (site, module))
        else:
            forward_site, module = thread.forward.get(node_sequence(node), (None, module))
        recorder.n_values += len(digests) >> 4
        writer.add(
            (seq, _OP, recorder.step, spec.name, site, forward_site, module, thread.name,
             writer.text(text) if text else self._empty, layout, digests, links)
        )  # fmt: skip
        if recorder.on_tensors:
            for listener in recorder.on_tensors:
                listener(seq, "op", spec.text, site, list(enumerate(outputs, len(inputs) + spec.random)))

    def _described_before(self, spec: OpSpec, kinds: Any, inputs: list[Any]) -> list[TensorInfo]:
        # Before the op: it may give a tensor another shape.
        found = self._inputs.get((spec.name, kinds))
        if found is None:
            found = self._inputs[spec.name, kinds] = [describe("in", "", tensor) for tensor in inputs]
        return found

    def _describe(self, spec: OpSpec, inputs: list[Any], outputs: list[Any], source: str) -> int:
        infos = [i if isinstance(i, TensorInfo) else describe("in", "", i) for i in inputs]
        if spec.random:
            infos.append(TensorInfo("rng", source, "state", ()))
        infos += [describe("out", "", tensor) for tensor in outputs]
        return self._recorder.writer.layout(tuple(infos))

    def _generator(self, kwargs: dict[str, Any], inputs: list[Any]) -> tuple[str, bytes]:
        """The RNG source that an op draws from, and the digest of its state."""
        generator, source = kwargs.get("generator"), GIVEN
        if generator is None:
            device = self._torch.device(kwargs.get("device") or (inputs[0].device if inputs else "cpu"))
            generator = _default_generator(self._torch, device)
            source = "torch" if device.type == "cpu" else str(getattr(generator, "device", device))
        return source, digest_many([generator.get_state()]) if generator is not None else bytes(16)


def _seen_around(
    spec: OpSpec,
    inputs: list[Any],
    outputs: list[Any],
    before: tuple[bytes, bytes, bytes],
    state: bytes,
) -> Seen:
    """What was seen before and after an op that writes to its arguments."""
    digests, kinds, bases = before
    after, more_kinds, more_bases = observe(outputs)
    if spec.source and len(inputs) == len(outputs):
        digests = after  # the values came from outside, not from what the tensor held
    return inputs, outputs, digests + state + after, kinds + more_kinds, bases, more_bases


def _seen_after(spec: OpSpec, inputs: list[Any], outputs: list[Any], state: bytes) -> Seen:
    """What is seen after an op that left its inputs as they were: one look at all."""
    if spec.alias:
        digests, kinds, bases = observe(inputs)
        return inputs, outputs, digests + digests, kinds, bases, bases
    digests, kinds, bases = observe(inputs + outputs)
    n = len(inputs)
    if state:
        digests = digests[: 16 * n] + state + digests[16 * n :]
    return inputs, outputs, digests, kinds, bases[: 8 * n], bases[8 * n :]


def _default_generator(torch: Any, device: Any) -> Any:
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        return torch.cuda.default_generators[index]
    return torch.default_generator if device.type == "cpu" else None


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
                return op(*args, **(kwargs or nothing))
            if any(is_opaque(tensor) for tensor in tensors):
                return NotImplemented  # torch calls that dispatch: the ops inside it are recorded
        thread = mode.thread
        if len(thread.forward) > _FORWARD_SITES:
            thread.forward.clear()
        return call(op, args, kwargs or nothing, thread)

    # Set afterwards: a method of the class body would be wrapped in a switch for torch.compile, which is off.
    OpMode.__torch_dispatch__ = dispatch
    return OpMode
