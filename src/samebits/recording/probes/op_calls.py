"""Calls of operations as the dispatcher sees them, and the memory that they return unwritten."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from array import array
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from samebits._runtime.compiled_code import compiled_code_runs_eagerly
from samebits._runtime.patching import Patches
from samebits._runtime.processes import start_within
from samebits._torch.core import current_node, is_random, mutated_arguments, sequence_peek
from samebits._torch.own_ops import NAMESPACE as OURS
from samebits.digest.native import load_module
from samebits.digest.pending import join
from samebits.recording._recorder import is_tensor
from samebits.recording.probes.contents import UNFILLED
from samebits.records.events import GIVEN, NO_WRITER

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._torch.schemas import OpTraits
    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.backward import BackwardProbe
    from samebits.recording.probes.modules import ModulePaths

# What is known of an op whose links are asked for (the same in bindings/memory.c): its outputs' contents come
# from outside torch; it draws from a generator; it writes to an argument.
SOURCE, RANDOM, WRITES = 1, 2, 4

_UNKNOWN = (0, NO_WRITER)


class Memory(Protocol):
    """**Protocol:** follows storages by address: each has a serial number and the event that last wrote it.

    A new storage can reuse an address. Storages that torch makes come out of an op, which starts a new serial
    there; memory made elsewhere (NumPy) is noticed by comparison, since its digest is not the writer's.
    """

    def op_links(self, seq: int, inputs: bytes, outputs: bytes, flags: int, /) -> bytes:
        """Return links of an op's inputs and outputs; outputs that are new or written get `seq` as writer.

        Args:
            seq: number of the op's event.
            inputs: where the storages of the tensors that it read begin, 8 bytes each.
            outputs: likewise for what it returned or wrote.
            flags: what is known of the op.
        """

    def event_links(self, seq: int, bases: bytes, writes: bool, /) -> bytes:  # noqa: FBT001
        """Return links of the tensors of another event.

        Args:
            seq: its number.
            bases: where their storages begin.
            writes: whether it counts as their writer, as a batch does.
        """


def memory_map() -> Memory:
    """Return a map that knows nothing yet: the C module's, or the one in Python."""
    module = load_module()
    made: Memory = MemoryMap() if module is None else module.MemoryMap()
    return made


class MemoryMap:
    """The map in Python; see `Memory`."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[int, int]] = {}
        self._serial = itertools.count(1).__next__

    def op_links(self, seq: int, inputs: bytes, outputs: bytes, flags: int, /) -> bytes:
        """See `Memory`."""
        entries = self._entries
        links: list[int] = []
        read = array("Q", inputs)
        for base in read:
            entry = entries.get(base)
            if entry is None or flags & SOURCE:
                entry = entries[base] = (self._serial(), NO_WRITER)
            links += entry
        if flags & RANDOM:
            links += _UNKNOWN
        for base in array("Q", outputs):
            if base in read:
                entry = entries[base]
                links += entry
                if flags & (WRITES | SOURCE):
                    entries[base] = (entry[0], seq)
            else:
                serial = self._serial()
                links += (serial, NO_WRITER)
                entries[base] = (serial, seq)
        entries.pop(0, None)  # no storage is there: tensors without contents are not linked
        return array("i", links).tobytes()

    def event_links(self, seq: int, bases: bytes, writes: bool, /) -> bytes:  # noqa: FBT001
        """See `Memory`."""
        entries = self._entries
        links: list[int] = []
        for base in array("Q", bases):
            if writes and base:
                entries[base] = (self._serial(), seq)
                links += (entries[base][0], NO_WRITER)
            else:
                links += entries.get(base, _UNKNOWN)
        return array("i", links).tobytes()


# What they return holds values from outside torch: Python, NumPy, a file.
_SOURCES = ("aten::lift_fresh", "aten::lift", "aten::set_")
_TRUSTED = ("aten::", f"{OURS}::")
# Two tensors have one storage afterwards, and count its versions apart.
_SHARES = "aten::set_"
# What they return is their input under another name.
_ALIASES = ("aten::detach.default", "aten::alias.default")
# They have no numbers of their own: profiler ranges, bookkeeping.
_IGNORED = ("profiler::", "prim::", "c10d::")

# Positions among the tensors that they return of scratch memory for the backward pass, which they do not fill
# to its end. On the CPU the first two are the only ones: measured with MALLOC_PERTURB_ on 227 000 calls of
# torch 2.13.0's own samples. The others: aten/src/ATen/native/cudnn/{RNN,BatchNorm}.cpp, Normalization.cpp.
WORKSPACES: Mapping[str, tuple[int, ...]] = {
    "aten::_ctc_loss": (1,),
    "aten::mkldnn_rnn_layer": (3,),
    "aten::_cudnn_rnn": (3,),
    "aten::miopen_rnn": (3,),
    "aten::cudnn_batch_norm": (3,),
    "aten::_batch_norm_with_update": (3,),
    "aten::batch_norm_with_update": (3,),
    # Seed and offset of dropout, which are allocated and not filled without dropout. Seen on an H200 with
    # torch 2.11.0; aten/src/ATen/native/transformers/cuda/attention.cu, native/cudnn/MHA.cpp. What dropout
    # draws from is recorded as the state of the generator. Sequence lengths, which come before them, are
    # there for nested tensors only.
    "aten::_efficient_attention_forward": (2, 3),
    "aten::_flash_attention_forward": (2, 3),
    "aten::_scaled_dot_product_efficient_attention": (2, 3),
    "aten::_scaled_dot_product_flash_attention": (2, 3),
    "aten::_scaled_dot_product_cudnn_attention": (2, 3),
    "aten::_scaled_dot_product_fused_attention_overrideable": (2, 3),
}
# Positions among the tensors that they read of such memory; negative ones count from the end
# (aten/src/ATen/native/native_functions.yaml, 2.13.0).
_LAST, _LAST_TWO = (-1,), (-2, -1)
_WORKSPACES_READ: Mapping[str, tuple[int, ...]] = {
    "aten::_ctc_loss_backward": _LAST,
    "aten::mkldnn_rnn_layer_backward": _LAST,
    "aten::_cudnn_rnn_backward": _LAST,
    "aten::miopen_rnn_backward": _LAST,
    "aten::cudnn_batch_norm_backward": _LAST,
    "aten::batch_norm_backward": _LAST,
    "aten::_efficient_attention_backward": _LAST_TWO,
    "aten::_flash_attention_backward": _LAST_TWO,
    "aten::_scaled_dot_product_efficient_attention_backward": _LAST_TWO,
    "aten::_scaled_dot_product_flash_attention_backward": _LAST_TWO,
    "aten::_scaled_dot_product_cudnn_attention_backward": (6, 7),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _LAST_TWO,
}


def hide(digests: Digests, positions: Iterable[int]) -> Digests:
    """Return digests in which those of scratch memory are all alike: nothing has filled it."""
    hidden = set(positions)
    if not hidden:
        return digests
    each = range(len(digests) >> 4)
    return join(bytes(16) if i in hidden else digests[16 * i : 16 * i + 16] for i in each)


FORWARD_SITES = 1 << 18
"""Forward sites that are held for backward passes that come later."""


class DispatchProbe:
    """**Base class** of the probes that watch the ops of every thread; torch keeps dispatch modes per thread.

    Args:
        recorder: where events go; its settings say how to watch.
        modules: knows the path of the module being executed.
        backward: knows whether a backward pass is running.
    """

    def __init__(self, recorder: Recorder, modules: ModulePaths, backward: BackwardProbe) -> None:
        self._recorder = recorder
        self._modules = modules
        self._backward = backward
        self._peek = sequence_peek()
        self._node = current_node()
        self._patches = Patches()
        self._entered = ExitStack()

    def enter(self, mode_class: type[Any]) -> None:
        """Watch the ops of this thread, and of threads that start from now on, by a dispatch mode."""
        self._entered.enter_context(compiled_code_runs_eagerly())
        self._entered.enter_context(mode_class())

        def run_recorded(function: Callable[[], Any]) -> Any:
            if not self._recorder.active:
                return function()
            with mode_class():
                return function()

        self._patches.set(threading.Thread, "start", start_within(threading.Thread.start, run_recorded))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()
        self._entered.close()


@dataclasses.dataclass(frozen=True, slots=True)
class OpSpec:
    """The facts of an op that are known before it is called.

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
        trusted: whether it is one of torch's own or of ours, which write only to what their schemas say.
        births: whether outputs that share no input's storage are new ones, filled by the op.
        special: whether it draws, writes or is not trusted.
        at_once: whether the C module can see a call of it by itself.
        flags: `random`, `writes` and `source` as the memory map takes them.
        workspaces: which of its outputs are scratch memory, whose contents are no values.
        workspaces_read: which of its inputs are such memory; negative numbers count from the end.
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
    trusted: bool
    births: bool
    special: bool
    at_once: bool
    flags: int
    workspaces: tuple[int, ...]
    workspaces_read: tuple[int, ...]


def spec_of(op: Any, intern: Callable[[str], int]) -> OpSpec:
    """Describe an op overload."""
    text = op.name()
    text = text if "." in text.partition("::")[2] else f"{text}.default"
    base = text.partition(".")[0]
    positions, keywords = mutated_arguments(op)
    writes, random, source = bool(positions or keywords), is_random(op), base in _SOURCES
    trusted = base.startswith(_TRUSTED) and base != _SHARES
    workspaces, workspaces_read = WORKSPACES.get(base, ()), _WORKSPACES_READ.get(base, ())
    return OpSpec(
        name=intern(text),
        text=text,
        ignored=text.startswith(_IGNORED),
        random=random,
        positions=positions,
        keywords=keywords,
        writes=writes,
        alias=text in _ALIASES,
        source=source,
        trusted=trusted,
        births=trusted and not source and base not in UNFILLED,
        special=writes or random or not trusted,
        at_once=trusted and not random and not (source and writes) and not (workspaces or workspaces_read),
        flags=source * SOURCE | random * RANDOM | writes * WRITES,
        workspaces=workspaces,
        workspaces_read=workspaces_read,
    )


# Their repr is short, exact and the same in every run.
_EXACT = frozenset((int, float, bool, str, complex, type(None)))
# The same holds for these types of torch, by their `str`.
_PLAIN = frozenset(("dtype", "device", "layout", "memory_format", "SymInt"))


def flatten_arguments(values: Iterable[Any], tensors: list[Any], others: list[Any]) -> None:
    """Append the tensors in `values` to `tensors`, and what describes the rest to `others`."""
    for value in values:
        kind = type(value)
        if hasattr(kind, "untyped_storage"):  # `is_tensor`, without its call
            tensors.append(value)
        elif kind in _EXACT:
            others.append(value)
        elif kind is list or kind is tuple:
            flatten_arguments(value, tensors, others)
        else:
            others.append(_Named(value))


def flatten_outputs(outcome: Any) -> list[Any]:
    """Return the tensors that an op returned."""
    if is_tensor(outcome):
        return [outcome]
    if isinstance(outcome, (list, tuple)):
        return [tensor for item in outcome for tensor in flatten_outputs(item)]
    if isinstance(outcome, Mapping):
        return [tensor for item in outcome.values() for tensor in flatten_outputs(item)]
    return []


def written_tensors(spec: OpSpec, outcome: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the tensors that an op returned, and those that it wrote to without returning them."""
    return with_written(outcome, written_arguments(spec, args, kwargs))


def with_written(outcome: Any, written: list[Any]) -> list[Any]:
    """Return the tensors that an op returned, and then those in `written` that it did not."""
    outputs = flatten_outputs(outcome)
    if len(written) == 1 and outputs and outputs[0] is written[0]:
        return outputs
    listed = {id(tensor) for tensor in outputs}
    return outputs + [tensor for tensor in written if id(tensor) not in listed]


def written_arguments(op: OpSpec | OpTraits, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the tensors that an op writes to, in the order of its arguments."""
    written = [args[position] for position in op.positions if position < len(args)]
    written += [kwargs[name] for name in op.keywords if name in kwargs]
    tensors: list[Any] = []
    flatten_arguments(written, tensors, [])
    return tensors


def argument_tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the tensors among the arguments of a call."""
    tensors: list[Any] = []
    flatten_arguments((*args, *kwargs.values()), tensors, [])
    return tensors


def generator_of(torch: Any, kwargs: dict[str, Any], inputs: list[Any]) -> tuple[str, Any]:
    """Return the RNG source that an op draws from, and its generator; None where that is not known."""
    generator, source = kwargs.get("generator"), GIVEN
    if generator is None:
        device = torch.device(kwargs.get("device") or (inputs[0].device if inputs else "cpu"))
        generator = _default_generator(torch, device)
        source = "torch" if device.type == "cpu" else str(getattr(generator, "device", device))
    return source, generator


def _default_generator(torch: Any, device: Any) -> Any:
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        return torch.cuda.default_generators[index]
    return torch.default_generator if device.type == "cpu" else None


def with_replaced(value: Any, new: Mapping[int, Any]) -> Any:
    """Return nested arguments or results with some of their tensors replaced, by identity."""
    if type(value) in (list, tuple):
        return type(value)([with_replaced(item, new) for item in value])
    return new.get(id(value), value)


class _Named:
    """A replacement of a value whose repr could hold an address."""

    __slots__ = ("_text",)

    def __init__(self, value: Any) -> None:
        self._text = name_of(value)

    def __repr__(self) -> str:
        return self._text


def name_of(value: Any) -> str:
    """Return the text of an argument whose repr could hold an address."""
    kind = type(value)
    return str(value) if kind.__module__ == "torch" and kind.__name__ in _PLAIN else kind.__name__
