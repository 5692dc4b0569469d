"""Values that the script names, outputs of modules, and their elements."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame
from samebits._runtime.patching import Patches
from samebits._torch.compiler import is_within_compiler, original_of, uncompiled
from samebits.digest.pending import read
from samebits.recording._recorder import is_tensor, recordable
from samebits.recording.kept_values import pack
from samebits.recording.naming import ROOT, without_wrappers
from samebits.recording.taps import TAPS
from samebits.records.events import MODULE_OUTPUT
from samebits.records.kinds import EventKind
from samebits.records.notes import Note, NoteCode, RecordedPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.modules import ModulePaths, ModuleRegistry

_DEPTH = 8
_LONGEST_NAME = 1000
_NUMBERS = (bool, int, float, complex)
_STATE = frozenset({EventKind.BATCH, EventKind.LOSS, EventKind.GRAD, EventKind.STEP})
_MB = 1_000_000
_WIDTH = 16  # bytes of a digest
_MOST_KNOWN = 1 << 18
_MOST_NOTED = 20  # names of taps that could not be recorded


class ValueKeeper:
    """Writes the elements of tensors to the record until a number of bytes is reached, the same ones once.

    Args:
        recorder: whose record it is; its settings say how many bytes, and whether the values of batches,
            losses, gradients and parameters are kept too.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._bytes_left = recorder.settings.value_bytes
        self._left_out = 0
        self._known: set[bytes] = set()

    def install(self) -> None:
        """Keep the values of the state, if the settings say so."""
        if self._recorder.settings.state_values:
            self._recorder.on_tensors.append(self._observe)

    def remove(self) -> None:
        """Keep no more of these."""
        if self._observe in self._recorder.on_tensors:
            self._recorder.on_tensors.remove(self._observe)

    def keep(self, seq: int, tensors: Sequence[Any], digests: bytes) -> None:
        """Write the elements of the tensors of an event; an error in one is noted, and the others are kept.

        Args:
            seq: number of the event.
            tensors: the tensors.
            digests: 16 bytes for each. A comparison finds elements by them, so they are kept once.
        """
        files: list[tuple[int, int, bytes]] = []
        try:
            for position, tensor in enumerate(tensors):
                digest = digests[_WIDTH * position : _WIDTH * (position + 1)]
                with self._recorder.recording(RecordedPart.CAPTURED_VALUE):
                    data = self._packed(tensor, digest)
                    if data is not None:
                        files.append((seq, position, data))
        finally:
            if files:
                self._recorder.writer.capture(files)

    def _packed(self, tensor: Any, digest: bytes) -> bytes | None:
        """Return the elements of a tensor; None if they are not to be written."""
        if digest in self._known:
            return None
        if self._bytes_left <= 0:
            self._left_out += 1
            return None
        data = pack(tensor, self._recorder.digest_many)
        if data is not None:
            self._bytes_left -= len(data)
            if len(self._known) < _MOST_KNOWN:
                self._known.add(digest)
        return data

    def notes(self) -> list[Note]:
        """Return a note if not all values were kept."""
        if not self._left_out:
            return []
        megabytes = self._recorder.settings.value_bytes // _MB
        return [Note.of(NoteCode.VALUES_BOUND, str(megabytes), str(self._left_out))]

    def _observe(
        self, seq: int, kind: EventKind, _op: str, _site: int | None, tensors: Sequence[tuple[int, Any]]
    ) -> None:
        if kind in _STATE:
            with self._recorder.recording(RecordedPart.TAP):
                values = [tensor for _, tensor in tensors]
                self.keep(seq, values, self._recorder.digests(values))


class TapProbe:
    """Records a `tap` event for each value that the script names.

    Args:
        recorder: where events go.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._keeper = ValueKeeper(recorder)
        self._inside = threading.local()
        self._noted: set[str] = set()
        self._hidden: Callable[[str, Any, FrameType | None, str], None] | None = None

    def install(self) -> None:
        """Be told of taps."""
        TAPS.add(self._tapped)
        self._keeper.install()

    def remove(self) -> None:
        """Be told of no more taps."""
        TAPS.discard(self._tapped)
        self._keeper.remove()

    def notes(self) -> list[Note]:
        """Return notes for the user on what was not kept."""
        return self._keeper.notes()

    def record(self, name: str, value: Any, frame: FrameType | None, source: str = "") -> None:
        """Record a value under a name.

        Args:
            name: of any length; it is cut.
            value: as for `samebits.tap`.
            frame: the call.
            source: `MODULE_OUTPUT` for what a module gave; empty for a tap of the script.
        """
        recorder = self._recorder
        if not recorder.active or getattr(self._inside, "is_on", False):
            return
        self._inside.is_on = True  # a value may tap while it is converted
        try:
            with recorder.recording(RecordedPart.TAP):
                self._uncompiled()(_cut(name), value, frame, source)
        finally:
            self._inside.is_on = False

    def _tapped(self, name: str, value: Any, frame: FrameType) -> None:
        self.record(name, value, frame)

    def _uncompiled(self) -> Callable[[str, Any, FrameType | None, str], None]:
        """Return the function that records; one that torch does not compile, once its compiler is loaded."""
        if self._hidden is not None:
            return self._hidden
        if "torch" not in sys.modules:  # NumPy alone
            return self._record
        hidden = uncompiled(self._record)
        if hidden != self._record:
            self._hidden = hidden
        return hidden

    def _record(self, name: str, value: Any, frame: FrameType | None, source: str) -> None:
        recorder, named = self._recorder, []
        leaves: list[tuple[str, Any]] = []
        others: list[TypeError] = []
        collect_leaves(value, leaves, others)
        if not leaves and not others:
            what = "it is None" if value is None else f"this {type(value).__name__} holds no value"
            others.append(TypeError(f"{what}; expected a tensor, or what is made of tensors"))
        if not source:  # what a module gives beside tensors, such as a cache, nobody asked for
            for error in others:
                self._note(name, error)
        for path, leaf in leaves:
            try:
                tensor = as_tensor(leaf)
                refuse_virtual(tensor)
            except (TypeError, ValueError, RuntimeError, OverflowError) as error:
                self._note(name, error)
                continue
            named.append((path, tensor))
        tensors = [tensor for _, tensor in named]
        seq, digests = recorder.tap(name, frame, tensors, tuple(path for path, _ in named), source)
        if self._recorder.settings.value_bytes:
            self._keeper.keep(seq, tensors, read(digests))

    def _note(self, name: str, error: Exception) -> None:
        self._noted.add(name)
        if len(self._noted) <= _MOST_NOTED:
            self._recorder.failures.add(RecordedPart.TAP, error, name)


def collect_leaves(
    value: Any, leaves: list[tuple[str, Any]], others: list[TypeError], path: str = "", depth: int = 0
) -> None:
    """Find the parts of a value that can be tensors.

    Args:
        value: the value.
        leaves: gets (path, part) of these.
        others: gets an error for each part that cannot be one.
        path: of the value within a larger one.
        depth: of the value in it.
    """
    if is_leaf(value):
        leaves.append((path, value))
        return
    items = _items(value) if depth < _DEPTH else None
    if items is None:
        if value is not None:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            others.append(TypeError(f"{kind} is not made of tensors"))
        return
    for key, item in items:
        collect_leaves(item, leaves, others, _cut(f"{path}.{key}" if path else str(key)), depth + 1)


def is_leaf(value: Any) -> bool:
    """Tell whether a value can be one tensor: an array, a number, a text, a list of numbers."""
    if is_tensor(value) or isinstance(value, (*_NUMBERS, str, bytes)) or hasattr(type(value), "__array__"):
        return True
    return isinstance(value, (list, tuple)) and bool(value) and all(type(each) in _NUMBERS for each in value)


def as_tensor(leaf: Any) -> Any:
    """Return a leaf as a tensor. Of a text, it has the bytes in UTF-8.

    Raises:
        TypeError, ValueError, RuntimeError, OverflowError: it cannot be one.
    """
    if is_tensor(leaf):
        return leaf
    import numpy as np
    import torch

    if isinstance(leaf, (str, bytes)):
        leaf = leaf.encode("utf-8", "surrogatepass") if isinstance(leaf, str) else leaf
        return (
            torch.frombuffer(bytearray(leaf), dtype=torch.uint8)
            if leaf
            else torch.empty(0, dtype=torch.uint8)
        )
    array = np.array(leaf, order="C")  # a copy: the original may be read-only, strided or of other byte order
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    dtype = getattr(torch, array.dtype.name, None)
    if array.dtype.kind == "V" and isinstance(dtype, torch.dtype):  # of ml_dtypes: bfloat16, float8
        integers = {1: np.uint8, 2: np.uint16}
        return torch.from_numpy(array.view(integers[array.dtype.itemsize])).view(dtype)
    return torch.from_numpy(array)


def refuse_virtual(tensor: Any) -> None:
    """Refuse a tensor that has no data, and one whose operations are being traced: ours would be too.

    Raises:
        ValueError: it is one of these.
    """
    if not recordable((tensor,)) or sys.modules["torch"].jit.is_tracing():
        raise ValueError("a tensor without data (meta), or being traced")


def _items(value: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 20]}…{hash_of(name)}"


def hash_of(name: str) -> str:
    """Return 16 digits that tell long names apart, the same in every process."""
    import hashlib

    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class ModuleOutputs:
    """Records what modules give, as a `tap` event with the path of the module.

    A module that is called within compiled code is not seen: torch compiles what it calls.

    Args:
        registry: the modules of the run.
        paths: their paths.
        patterns: of the paths that are wanted, as file names have them (`encoder.*`).
        record: gets the path, the output, the frame of the call, and `MODULE_OUTPUT`.
    """

    def __init__(
        self,
        registry: ModuleRegistry,
        paths: ModulePaths,
        patterns: Sequence[str],
        record: Callable[[str, Any, FrameType, str], None],
    ) -> None:
        self._registry = registry
        self._paths = paths
        self._patterns = patterns
        self._record = record
        self._patches = Patches()

    def install(self, torch: Any) -> None:
        """Watch calls of modules."""
        call, output_of, registry = torch.nn.Module.__call__, self._note, self._registry

        @functools.wraps(call)
        def tapped_call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not registry.has(module):  # made before recording began; the outermost is called first
                registry.note_tree(module)
            output = call(module, *args, **kwargs)
            output_of(module, output, calling_frame())
            return output

        self._patches.set(torch.nn.Module, "__call__", tapped_call)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def _note(self, module: Any, output: Any, frame: FrameType) -> None:
        original = original_of(module)
        if original is module and is_within_compiler(module, str(frame.f_globals.get("__name__", ""))):
            return
        module = original
        path = without_wrappers(self._paths.own_path(module)) or ROOT
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in self._patterns):
            self._record(path, output, frame, MODULE_OUTPUT)
