"""Every op that torch dispatches: its inputs, outputs, scalar arguments, site and module."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from samebits.recording.events import KINDS, TensorInfo
from samebits.recording.probes.arguments import argument_text, flatten_arguments, flatten_outputs
from samebits.recording.recorder import describe, is_tensor, shape_of
from samebits.recording.torch_private import (
    current_node,
    dispatch_mode_class,
    is_random,
    is_virtual,
    mutated_arguments,
    node_sequence,
    sequence_peek,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.recording.probes.backward import BackwardProbe
    from samebits.recording.probes.memory import MemoryMap
    from samebits.recording.probes.module_paths import ModulePaths
    from samebits.recording.recorder import Recorder

_OP = KINDS.index("op")
_FORWARD_SITES = 1 << 18  # forward sites kept for backward passes that come later
_SOURCES = ("aten::lift_fresh", "aten::lift", "aten::set_")
_ALIASES = ("aten::detach.default", "aten::alias.default")
# They have no numbers of their own: profiler ranges, bookkeeping.
_IGNORED = ("profiler::", "prim::", "c10d::")


@dataclasses.dataclass(frozen=True, slots=True)
class OpSpec:
    """What is known of an op before it is called.

    Args:
        name: text id of `aten::mm.default`.
        text: the same as text.
        ignored: whether it is not recorded.
        random: whether it draws from a generator.
        positions: positional arguments that it writes to.
        keywords: keyword arguments that it writes to.
        writes: whether it writes to any argument.
        alias: whether its output is its input under another name.
        source: whether its output's contents come from outside torch.
    """

    name: int
    text: str
    ignored: bool
    random: bool
    positions: tuple[int, ...]
    keywords: tuple[str, ...]
    writes: bool
    alias: bool
    source: bool


class OpProbe:
    """Records an `op` event for every op of every thread, from `first_op_step` on.

    Args:
        recorder: where events go.
        memory: finds which event wrote a tensor last.
        modules: knows the path of the module being executed.
        backward: knows whether a backward pass is running.
    """

    def __init__(
        self, recorder: Recorder, memory: MemoryMap, modules: ModulePaths, backward: BackwardProbe
    ) -> None:
        self.recorder = recorder
        self.memory = memory
        self.modules = modules
        self.backward = backward
        self._specs: dict[Any, OpSpec] = {}
        self._layouts: dict[Any, int] = {}
        self._empty = recorder.writer.text("")
        self._peek = sequence_peek()
        self._node = current_node()
        self._torch: Any = None
        self._mode_class: type[Any] | None = None
        self._mode: Any = None

    def install(self, torch: Any) -> None:
        """Watch the ops of this thread."""
        self._torch = torch
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
        if self._mode_class is None or not self.recorder.active:
            return function()
        with self._mode_class():
            return function()

    def call(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], forward: dict[int, Any]) -> Any:
        """Run an op and record it.

        Args:
            op: the overload.
            args: its positional arguments.
            kwargs: its keyword arguments.
            forward: sites of this thread's forward ops by the number of their autograd node.
        """
        recorder = self.recorder
        spec = self._specs.get(op) or self._learn(op)
        if (
            spec.ignored
            or not recorder.active
            or recorder.step < recorder.settings.first_op_step
            or recorder.quietly.depth
        ):
            return op(*args, **kwargs)
        inputs: list[Any] = []
        others: list[Any] = []
        flatten_arguments(args, inputs, others)
        if kwargs:
            flatten_arguments(kwargs.values(), inputs, others)
        state = self._generator_digest(kwargs, inputs) if spec.random else b""
        if spec.writes:
            before = recorder.digests(inputs)
            outcome = op(*args, **kwargs)
            outputs = _with_mutated(flatten_outputs(outcome), args, kwargs, spec)
            after = recorder.digests(outputs)
            digests = (after if spec.source and len(inputs) == len(outputs) else before) + state + after
        else:
            outcome = op(*args, **kwargs)
            outputs = flatten_outputs(outcome)
            digests = recorder.digests(inputs) * 2 if spec.alias else recorder.digests(inputs + outputs)
            if state:
                digests = digests[: 16 * len(inputs)] + state + digests[16 * len(inputs) :]
        if not outputs and outcome is not None:
            others.append(("->", outcome))
        self._record(spec, inputs, outputs, argument_text(others), digests, forward)
        return outcome

    def _record(
        self,
        spec: OpSpec,
        inputs: list[Any],
        outputs: list[Any],
        text: str,
        digests: bytes,
        forward: dict[int, Any],
    ) -> None:
        recorder, writer = self.recorder, self.recorder.writer
        seq = recorder.next_seq()
        site = recorder.sites.find(sys._getframe(3))
        module = self.modules.current()
        forward_site = None
        node = self._node() if self.backward.running else None
        if node is None:
            forward.setdefault(self._peek() - 1, (site, module))
        else:
            forward_site, module = forward.get(node_sequence(node), (None, module))
        links = self.memory.op_links(
            seq, inputs, outputs, writes=spec.writes, source=spec.source, rng=spec.random
        )
        writer.add(
            (seq, _OP, recorder.step, spec.name, site, forward_site, module, recorder.thread(),
             writer.text(text) if text else self._empty, self._layout(spec, inputs, outputs), digests, links)
        )  # fmt: skip
        for listener in recorder.on_tensors:
            first = len(inputs) + spec.random
            listener(seq, "op", spec.text, site, list(enumerate(outputs, first)))

    def _learn(self, op: Any) -> OpSpec:
        text = op.name()
        text = text if "." in text.partition("::")[2] else f"{text}.default"
        positions, keywords = mutated_arguments(op)
        found = self._specs[op] = OpSpec(
            name=self.recorder.writer.text(text),
            text=text,
            ignored=text.startswith(_IGNORED),
            random=is_random(op),
            positions=positions,
            keywords=keywords,
            writes=bool(positions or keywords),
            alias=text in _ALIASES,
            source=text.partition(".")[0] in _SOURCES,
        )
        return found

    def _layout(self, spec: OpSpec, inputs: list[Any], outputs: list[Any]) -> int:
        tensors = inputs + outputs
        try:
            key = (spec.name, len(inputs), tuple([(t.dtype, t.shape) for t in tensors]))
        except RuntimeError:  # nested tensors have no shape
            key = (spec.name, len(inputs), tuple([(t.dtype, shape_of(t)) for t in tensors]))
        found = self._layouts.get(key)
        if found is None:
            infos = [describe("in", "", tensor) for tensor in inputs]
            if spec.random:
                infos.append(TensorInfo("rng", "generator", "state", ()))
            infos += [describe("out", "", tensor) for tensor in outputs]
            found = self._layouts[key] = self.recorder.writer.layout(tuple(infos))
        return found

    def _generator_digest(self, kwargs: dict[str, Any], inputs: list[Any]) -> bytes:
        generator = kwargs.get("generator")
        if generator is None:
            device = kwargs.get("device") or (inputs[0].device if inputs else "cpu")
            generator = _default_generator(self._torch, self._torch.device(device))
        return self.recorder.digests([generator.get_state()]) if generator is not None else bytes(16)


def _default_generator(torch: Any, device: Any) -> Any:
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        return torch.cuda.default_generators[index]
    return torch.default_generator if device.type == "cpu" else None


def _with_mutated(
    outputs: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any], spec: OpSpec
) -> list[Any]:
    """The outputs and those arguments that the op wrote to without returning them."""
    listed = {id(tensor) for tensor in outputs}
    written = [args[position] for position in spec.positions if position < len(args)]
    written += [kwargs[name] for name in spec.keywords if name in kwargs]
    mutated: list[Any] = []
    flatten_arguments(written, mutated, [])
    return outputs + [tensor for tensor in mutated if id(tensor) not in listed]


def _mode_class(probe: OpProbe) -> type[Any]:
    base = dispatch_mode_class()

    class OpMode(base):  # type: ignore[misc, valid-type]
        """Hands every op of one thread to the probe."""

        def __init__(self) -> None:
            super().__init__()
            self.forward: dict[int, Any] = {}

        def __torch_dispatch__(
            self, op: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = kwargs or {}
            if types and any(is_virtual(arg) for arg in args if is_tensor(arg)):
                return op(*args, **kwargs)
            if len(self.forward) > _FORWARD_SITES:
                self.forward.clear()
            return probe.call(op, args, kwargs, self.forward)

    return OpMode
