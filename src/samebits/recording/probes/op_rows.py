"""Events of ops: their layouts, and the lines and modules that they come from."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from samebits._torch.core import current_node, node_sequence, sequence_peek
from samebits.digest.tensors import kinds_in
from samebits.recording._recorder import describe
from samebits.records.events import TensorInfo
from samebits.records.kinds import KINDS, EventKind, Role

if TYPE_CHECKING:
    from types import FrameType

    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.backward import BackwardProbe
    from samebits.recording.probes.modules import ModulePaths
    from samebits.recording.probes.op_calls import OpSpec

_OP = KINDS.index(EventKind.OP)
_WORD = 8


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadState:
    """The facts of a running thread.

    Args:
        forward: site and module of its forward ops by the number of their autograd node.
        modules: the modules that it executes, outermost first.
        name: text id of its name.
        drawn_from: the state of the generator that its last random op drew from; empty if that is not known.
    """

    forward: dict[int, tuple[int | None, int]]
    modules: list[Any]
    name: int
    drawn_from: list[Any] = dataclasses.field(default_factory=list)


class OpRows:
    """Hands the rows of ops to the writer.

    Args:
        recorder: where rows go.
        modules: knows the path of the module being executed.
        backward: knows whether a backward pass is running.
    """

    def __init__(self, recorder: Recorder, modules: ModulePaths, backward: BackwardProbe) -> None:
        self._recorder = recorder
        self._writer = recorder.writer
        self._modules = modules
        self._backward = backward
        self._peek = sequence_peek()
        self._node = current_node()
        self._layouts: dict[Any, int] = {}
        self._layouts_by_key: dict[tuple[int, bytes], int] = {}
        self._inputs: dict[Any, list[TensorInfo]] = {}
        self._empty = recorder.writer.text("")

    def add(
        self, spec: OpSpec, thread: ThreadState, frame: FrameType, row: tuple[int, int, Digests, bytes, str]
    ) -> int | None:
        """Record the event of an op, and return its site.

        Args:
            spec: the op.
            thread: the facts of the running thread.
            frame: the frame that called the op.
            row: number of the event, layout, digests, links, text of its other arguments.
        """
        seq, layout, digests, links, text = row
        writer, empty, modules = self._writer, self._empty, thread.modules
        module = self._modules.text(modules[-1]) if modules else empty
        site, forward_site = self._recorder.sites.find(frame), None
        node = self._node() if self._backward.running else None
        if node is None:
            thread.forward.setdefault(self._peek() - 1, (site, module))
        else:
            forward_site, module = thread.forward.get(node_sequence(node), (None, module))
        writer.add(
            (seq, _OP, self._recorder.steps.count, spec.name, site, forward_site, module, thread.name,
             writer.text(text) if text else empty, layout, digests, links)
        )  # fmt: skip
        return site

    def layout(self, spec: OpSpec, kinds: bytes, tensors: tuple[list[Any], list[Any]], source: str) -> int:
        """Return the id of the description of an op's tensors.

        Args:
            spec: the op.
            kinds: a key of their dtypes and shapes.
            tensors: inputs (or their descriptions) and outputs.
            source: the RNG source that it draws from, or empty.
        """
        inputs, outputs = tensors
        key = (spec.name, len(inputs), kinds, source)
        layout = self._layouts.get(key)
        if layout is None:
            infos = [i if isinstance(i, TensorInfo) else describe(Role.IN, "", i) for i in inputs]
            if spec.random:
                infos.append(TensorInfo(Role.RNG, source, "state", ()))
            infos += [describe(Role.OUT, "", tensor) for tensor in outputs]
            layout = self._layouts[key] = self._writer.layout(tuple(infos))
        return layout

    def layout_of(self, spec: OpSpec, key: bytes) -> int:
        """Return the same id from the key that the C module gives (bindings/calls.c)."""
        layout = self._layouts_by_key.get((spec.name, key))
        if layout is None:
            n_inputs, kinds = int.from_bytes(key[:_WORD], "little"), kinds_in(key[_WORD:])
            infos = infos_of(Role.IN, kinds[:n_inputs]) + infos_of(Role.OUT, kinds[n_inputs:])
            layout = self._layouts_by_key[spec.name, key] = self._writer.layout(tuple(infos))
        return layout

    def described_before(self, spec: OpSpec, kinds: bytes, inputs: list[Any]) -> list[TensorInfo]:
        """Describe the inputs of an op before it runs: it may give a tensor another shape."""
        infos = self._inputs.get((spec.name, kinds))
        if infos is None:
            infos = self._inputs[spec.name, kinds] = [describe(Role.IN, "", tensor) for tensor in inputs]
        return infos


def infos_of(role: Role, kinds: list[tuple[str, tuple[int, ...]]]) -> list[TensorInfo]:
    """Return descriptions of tensors by their dtypes and shapes."""
    return [TensorInfo(role, "", dtype, shape) for dtype, shape in kinds]
