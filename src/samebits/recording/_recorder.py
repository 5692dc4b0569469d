"""The recorder, which turns what the probes see into events of the record."""

from __future__ import annotations

import functools
import itertools
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from samebits._runtime.processes import at_fork
from samebits._torch.core import enter_shelter, is_virtual
from samebits.errors import SamebitsError
from samebits.recording._guard import Failures, Guard
from samebits.recording._steps import Steps
from samebits.recording.sites import SiteFinder
from samebits.records.events import DRAWN, NO_WRITER, TensorInfo
from samebits.records.kinds import KINDS, EventKind, Role
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from samebits.digest.pending import Digests
    from samebits.recording.probes.substitution import Substituter
    from samebits.recording.settings import RecordingSettings
    from samebits.records.events import Drawn
    from samebits.records.writer import RecordWriter

    TensorListener = Callable[[int, EventKind, str, int | None, Sequence[tuple[int, Any]]], None]

_UNLINKED = struct.pack("<2i", 0, NO_WRITER)
# Reaching a member by way of its class takes longer, and every event would.
_BATCH, _DRAW, _GRAD_KIND = EventKind.BATCH, EventKind.DRAW, EventKind.GRAD
_GRAD, _VALUE = Role.GRAD, Role.VALUE
_KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}
_BEFORE_CALL = {EventKind.READ: EventKind.EARLIER}  # what becomes of values; all others are left out


class Quiet(threading.local):
    """A context in which the ops that a thread runs are samebits' own. It can be nested.

    The script's torch modes and tensor subclasses are not told of what happens inside.
    """

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self._guards: list[Any] = []

    def __enter__(self) -> None:
        depth = self.depth  # looking up what is local to a thread is slow, so once
        if not depth:
            self._guards = enter_shelter()
        self.depth = depth + 1

    def __exit__(self, *_: object) -> None:
        self.depth = depth = self.depth - 1
        if not depth:
            guards = self._guards
            while guards:
                guards.pop().__exit__(None, None, None)


class TensorReader(NamedTuple):
    """The functions that read tensors; they can be imported once torch is.

    Args:
        digest_many: gives 16 bytes for each tensor.
        observe: gives their digests, which a GPU may still be computing, a key of their dtypes and shapes,
            and where they are stored.
        addresses: gives where they are stored.
    """

    digest_many: Callable[[Sequence[Any]], bytes]
    observe: Callable[[Sequence[Any]], tuple[Digests, bytes, bytes]]
    addresses: Callable[[Sequence[Any]], bytes]


class TrainingSeen:
    """The parts of training that the probes have seen so far.

    Attributes:
        optimizer: whether an optimizer was made, or parameters are optimized.
        backward: whether a backward pass was made.
        compiler: whether the script asked for `torch.compile`.
    """

    def __init__(self) -> None:
        self.optimizer = False
        self.backward = False
        self.compiler = False


class Recorder:
    """Numbers events, finds their sites, digests their tensors and hands rows to the writer.

    Probes ask `active` first: it is False before the start, after the end, and in forked children.

    Args:
        writer: where rows go.
        settings: how the run is recorded.

    Attributes:
        active: whether this process is recorded; written here only.
        sites: finds the lines of the user's code.
        steps: counts them, and ends the run.
        seen: the parts of training that were seen.
        quietly: a context in which nothing is recorded.
        failures: the errors in probes.
        before_batch: called with a batch and the frame that asks for it.
        on_tensors: called with each event that shows tensors.
        next_seq: gives the number of the next event.
    """

    torch_seeds = False  # the global generators are the script's to seed

    def __init__(self, writer: RecordWriter, settings: RecordingSettings) -> None:
        self.writer: Final = writer
        self.settings: Final = settings
        self.sites: Final = SiteFinder(writer.site, settings.moved)
        self.steps: Final = Steps()
        self.seen: Final = TrainingSeen()
        self.before_batch: Final[list[Callable[[Any, FrameType], None]]] = []
        self.on_tensors: Final[list[TensorListener]] = []
        self.next_seq: Final = itertools.count().__next__
        self.quietly: Final = Quiet()
        self.failures: Final = Failures()
        writer.when_lost = functools.partial(self.failures.add, RecordedPart.STEP)
        self.active = False
        self._awaits_call = False
        self._unreadable = 0
        self._substituter: Substituter | None = None
        self._links: Callable[[int, bytes, bool], bytes] | None = None
        self._tensors: TensorReader
        self._infos: dict[Any, int] = {}
        self._threads: dict[int, int] = {}
        self._main = threading.main_thread().ident
        self._guards: dict[RecordedPart, Guard] = {}
        self._empty = writer.text("")

    @property
    def counts(self) -> bool:
        """True while what this process does is judged: it is recorded, and no call is waited for."""
        return self.active and not self._awaits_call

    @property
    def step(self) -> int:
        """The step that the run is in, from 0."""
        return self.steps.count

    @property
    def unreadable(self) -> int:
        """The number of tensors that could not be read."""
        return self._unreadable

    @property
    def substituter(self) -> Substituter | None:
        """The object that replaces some values by those of another run; None in most runs."""
        return self._substituter

    def start(self) -> None:
        """Begin to record in this process, and only in this one."""
        self.active = True
        at_fork(in_child=self._forked)

    def stop(self) -> None:
        """Record nothing from now on."""
        self.active = False

    def await_call(self) -> None:
        """Record until `begin_call` only what may explain a difference: operations, draws, batches, reads."""
        self._awaits_call = True

    def begin_call(self) -> None:
        """Record from now on what is judged, as if the process began here."""
        self._awaits_call = False
        self.seen.optimizer = self.seen.backward = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing in the body, of any thread."""
        before, self.active = self.active, False
        try:
            yield
        finally:
            self.active = before

    def _forked(self) -> None:
        self.active = False

    def set_reader(self, tensors: TensorReader) -> None:
        """Set the functions that read tensors, now that torch is imported."""
        self._tensors = tensors

    def set_links(self, links: Callable[[int, bytes, bool], bytes]) -> None:
        """Have each event name the events that wrote its tensors.

        Args:
            links: gives the writers from an event's number, addresses, and whether their contents are new.
        """
        self._links = links

    def set_substituter(self, substituter: Substituter | None) -> None:
        """Set the object that replaces some values; None for none."""
        self._substituter = substituter

    def digest_many(self, tensors: Sequence[Any]) -> bytes:
        """Return 16 bytes for each tensor; ops that this runs are recorded unless they run quietly.

        Raises:
            SamebitsError: one cannot be read.
        """
        return self._tensors.digest_many(tensors)

    def recording(self, part: RecordedPart) -> Guard:
        """Return a context in which a probe's ops are not recorded and its errors do not reach the script."""
        guard = self._guards.get(part)
        if guard is None:
            guard = self._guards[part] = Guard(self.quietly, self.failures, part)
        return guard

    def thread(self) -> int:
        """Return the text id of the running thread's name; the main thread's is empty."""
        ident = threading.get_ident()
        text_id = self._threads.get(ident)
        if text_id is None or ident != self._main:
            # Thread idents are reused, so only the main thread's name can be kept.
            name = "" if ident == self._main else threading.current_thread().name
            text_id = self._threads[ident] = self.writer.text(name)
        return text_id

    def digests(self, tensors: Sequence[Any]) -> bytes:
        """Return 16 bytes per tensor, zeros for one that cannot be read, without recording any op."""
        with self.quietly:
            try:
                return self.digest_many(tensors)
            except SamebitsError:
                return b"".join([self._digest_or_none(tensor) for tensor in tensors])

    def _digest_or_none(self, tensor: Any) -> bytes:
        try:
            return self.digest_many([tensor])
        except SamebitsError:
            self._unreadable += 1
            return bytes(16)

    def layout(self, role: Role, names: tuple[str, ...], tensors: Sequence[Any]) -> int:
        """Return the id of the description of some tensors that share a role."""
        try:
            key = (role, names, tuple([(t.dtype, t.shape) for t in tensors]))
        except (RuntimeError, TypeError):  # nested tensors have no shape, or one that cannot be a key
            key = (role, names, tuple([(t.dtype, shape_of(t)) for t in tensors]))
        layout_id = self._infos.get(key)
        if layout_id is None:
            infos = tuple(describe(role, name, t) for name, t in zip(names, tensors, strict=True))
            layout_id = self._infos[key] = self.writer.layout(infos)
        return layout_id

    def observe(self, role: Role, names: tuple[str, ...], tensors: Sequence[Any]) -> tuple[int, Digests]:
        """Return the layout and the digests of some tensors that share a role."""
        try:
            with self.quietly:
                digests, kinds, _ = self._tensors.observe(tensors)
        except SamebitsError:
            return self.layout(role, names, tensors), self.digests(tensors)
        key = (role, names, kinds)
        layout_id = self._infos.get(key)
        if layout_id is None:
            layout_id = self._infos[key] = self.layout(role, names, tensors)
        return layout_id, digests

    def value(
        self,
        kind: EventKind,
        op: str,
        frame: FrameType | None,
        tensors: Sequence[Any],
        names: tuple[str, ...],
    ) -> None:
        """Record an event that shows some tensors as values: a batch, a loss, a read, a save."""
        if self._awaits_call:
            if kind not in _BEFORE_CALL:
                return
            kind = _BEFORE_CALL[kind]
        layout, digests = self.observe(_GRAD if kind is _GRAD_KIND else _VALUE, names, tensors)
        self.event(kind, op, self.sites.find(frame), layout, digests, tensors)

    def event(
        self,
        kind: EventKind,
        op: str,
        site: int | None,
        layout: int,
        digests: Digests,
        tensors: Sequence[Any],
    ) -> int:
        """Record one event outside the op stream and return its number."""
        return self._add((kind, op, ""), site, layout, digests, tensors)

    def state(
        self, op: str, site: int | None, layout: int, digests: Digests, tensors: Sequence[Any], owned: str
    ) -> int:
        """Record a `step` event; `owned` names the tensors of the optimizer that stepped."""
        return self._add((EventKind.STEP, op, owned), site, layout, digests, tensors)

    def tap(
        self, name: str, frame: FrameType | None, tensors: Sequence[Any], paths: tuple[str, ...], source: str
    ) -> tuple[int, Digests]:
        """Record a value that the script named, or what a module gave.

        Args:
            name: of the value.
            frame: the call.
            tensors: its parts.
            paths: of the parts within it; empty for a value that is one tensor.
            source: `MODULE_OUTPUT`, or empty.

        Returns:
            The number of the event, and 16 bytes for each of the tensors.
        """
        site = self.sites.find(frame)
        if not tensors:  # torch may not be imported yet
            return self.remark(EventKind.TAP, name, site, source), b""
        layout, digests = self.observe(_VALUE, paths, tensors)
        return self._add((EventKind.TAP, name, source), site, layout, digests, tensors), digests

    def shared(
        self, op: str, site: int | None, layout: int, digests: Digests, tensors: Sequence[Any], text: str
    ) -> int:
        """Record a `collective` event: state that the ranks of a run share, with a description."""
        return self._add((EventKind.COLLECTIVE, op, text), site, layout, digests, tensors)

    def _add(
        self,
        what: tuple[EventKind, str, str],
        site: int | None,
        layout: int,
        digests: Digests,
        tensors: Sequence[Any],
    ) -> int:
        kind, op, arguments = what
        seq = self.next_seq()
        links = b""
        if self._links is not None:
            links = self._links(seq, self._tensors.addresses(tensors), kind is _BATCH)
        if links:  # a scalar of an optimizer's state is no tensor, and no event wrote it
            links += _UNLINKED * ((len(digests) >> 4) - len(tensors))
        text = self.writer.text
        self.writer.add(
            (seq, _KIND_CODE[kind], self.steps.count, text(op), site, None, self._empty, self.thread(),
             text(arguments) if arguments else self._empty, layout, digests, links)
        )  # fmt: skip
        for listener in self.on_tensors:
            listener(seq, kind, op, site, list(enumerate(tensors)))
        return seq

    def remark(self, kind: EventKind, op: str, site: int | None, arguments: str) -> int:
        """Record an event that has no tensors, such as a seeding, and return its number."""
        text, seq = self.writer.text, self.next_seq()
        self.writer.add(
            (seq, _KIND_CODE[kind], self.step, text(op), site, None, self._empty, self.thread(),
             text(arguments), self.writer.layout(()), b"", b"")
        )  # fmt: skip
        return seq

    def draw(self, drawn: Drawn, step: int, *, thread: str | None = None) -> None:
        """Record a value that was taken from outside torch.

        Args:
            drawn: the value, and who took it.
            step: the step in which it was taken.
            thread: by default the name of the running thread.
        """
        texts, empty = self.writer.text, self._empty
        where = self.thread() if thread is None else texts(thread)
        layout = self.writer.layout((DRAWN,))
        self.writer.add(
            (self.next_seq(), _KIND_CODE[_DRAW], step, texts(drawn.op), drawn.site, None,
             texts(drawn.library) if drawn.library else empty, where,
             texts(drawn.text) if drawn.text else empty, layout, drawn.digest, b"")
        )  # fmt: skip


def describe(role: Role, name: str, tensor: Any) -> TensorInfo:
    """Return the description of a tensor in a record: role, name, dtype, shape."""
    return TensorInfo(role, name, str(tensor.dtype).removeprefix("torch."), shape_of(tensor))


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor; empty for one that has none as a whole (nested)."""
    try:
        return tuple(map(int, tensor.shape))
    except (RuntimeError, TypeError, AttributeError):
        return ()


def recordable(tensors: Sequence[Any]) -> bool:
    """Tell whether all tensors have data (none is being traced)."""
    return not any(is_virtual(tensor) for tensor in tensors)


def is_tensor(value: Any) -> bool:
    """Tell whether a value is a tensor; it asks the type, so that torch need not be imported."""
    return hasattr(type(value), "untyped_storage")
