"""The events and facts in a record: frozen values that recording writes and comparison reads."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.records.kinds import Level, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from samebits._runtime.frames import Site
    from samebits.records.kinds import EventKind
    from samebits.records.notes import Note

NO_WRITER = -1
_MOST_TENSORS = 1 << 20  # of one event; a record is not trusted
GIVEN = "given"  # instead of an RNG source: an op drew from a generator given to it
EARLIER = " before recording began"  # ends an `rng` event that only notes an earlier state
WORKER = "worker "  # begins the name of a thread: that worker of a DataLoader made the draw
MODULE_OUTPUT = "module"  # arguments of a `tap`: it is what the module named by its op gave
END = "end"  # the `step` event that a run writes when its script ends; it closes no step
RETURNED = "returned"  # the `save` event of what a function returned that a test judges


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """The description of one tensor of an event, without its bits.

    Args:
        role: the part that it plays in its event.
        name: parameter or buffer path (`fc1.weight`), RNG source (`torch`, `cuda:0`, `python`, `numpy`, or
            `GIVEN`), position in a batch; else empty.
        dtype: without the `torch.` prefix, such as `float32`.
        shape: sizes.
    """

    role: Role
    name: str
    dtype: str
    shape: tuple[int, ...]


DRAWN = TensorInfo(Role.VALUE, "", "draw", ())  # the digest of a `draw` event belongs to it
UNUSED = "not used"  # arguments of a `draw`: the previous one of the same source and site had no effect


@dataclass(frozen=True, slots=True)
class Link:
    """The origin of a tensor's contents within one run (op level only).

    Args:
        memory: serial number of the storage in this run; the same storage keeps it while it lives.
        writer: `seq` of the event that last wrote that storage before this event; `NO_WRITER` when no
            recorded event did (the value entered from Python, NumPy, a file or another process).
            For an `out` tensor: the writer before this event, so that writes to one storage form a chain.
    """

    memory: int
    writer: int


@dataclass(frozen=True, slots=True)
class Event:
    """One observation of a run.

    Args:
        seq: position in the run, from 0.
        kind: its kind.
        step: number of step boundaries before it.
        op: `aten::mm.default` for an op; `SGD.step`, `item`, `torch.save`, `DataLoader` for others.
        site: the line of user code that caused it.
        forward_site: for a backward op, the line that ran its forward op.
        module: path of the module being executed, such as `encoder.layers.0`; for a backward op, the path
            of the module of its forward.
        thread: name of the thread; the main thread is the empty string.
        arguments: canonical text of the non-tensor arguments.
        tensors: the tensors that the digests belong to.
        digests: 16 bytes each, parallel to `tensors`.
        links: parallel to `tensors`, or empty at step level.
    """

    seq: int
    kind: EventKind
    step: int
    op: str
    site: Site | None
    forward_site: Site | None
    module: str
    thread: str
    arguments: str
    tensors: tuple[TensorInfo, ...]
    digests: tuple[bytes, ...]
    links: tuple[Link, ...]


class Drawn(NamedTuple):
    """A value taken from outside torch, as it is recorded.

    Args:
        op: the function that gave it, such as `time.time`.
        site: number of the site of the line that took it.
        text: the value in short, or empty.
        digest: 16 bytes, of the value.
        library: the library function through which the line took it (`LibraryCall.to_text`), or empty.
    """

    op: str
    site: int | None
    text: str
    digest: bytes
    library: str = ""


@dataclass(frozen=True, slots=True)
class Ownership:
    """The part of the state in a `step` event that belongs to the optimizer that stepped.

    Args:
        number: of the optimizer, in order of creation.
        positions: of its tensors among the parameters and buffers of the event; None for all.
    """

    number: int = 0
    positions: tuple[int, ...] | None = None

    def to_text(self) -> str:
        """Return the arguments of the event, `optimizer 1 owns 0-5 8`; empty for a first that owns all."""
        if self.positions is None:
            return f"optimizer {self.number}" if self.number else ""
        return f"optimizer {self.number} owns {' '.join(_ranges(self.positions))}"

    @classmethod
    def from_text(cls, text: str) -> Ownership:
        """Read a text that `to_text` wrote; any other text means the first optimizer, which owns all."""
        try:
            words = text.split()
            if words[:1] != ["optimizer"] or words[2:3] not in ([], ["owns"]):
                return cls()
            return cls(int(words[1]), tuple(_positions(words[3:])) if words[2:] else None)
        except (ValueError, IndexError):
            return cls()


def several_threads(events: Iterable[Event]) -> bool:
    """Tell whether more than one thread made steps, from the `step` events of a run."""
    seen: set[str] = set()
    for event in events:
        if event.op != END:
            seen.add(event.thread)
            if len(seen) > 1:
                return True
    return False


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run as a whole.

    Args:
        command: the script or `-m module` and its arguments, as given.
        level: the amount of it that was recorded.
        status: `running` (its writer never closed it: killed), `finished`, `stopped` (by samebits, at a step
            limit or at the first difference), `failed` (uncaught exception).
        exit_status: as the shell would see it, None while unknown.
        failure: last line of the traceback, empty if none.
        steps: number of step boundaries.
        torch: torch version, empty when the script never imported torch.
        environment: facts of the machine and the packages; never compared for the verdict.
        control: the seeds and switches asked for, the result, and later changes; empty for a run without
            control.
        notes: remarks for the user on how it was recorded.
        replay: the result of executing its ops again (`ReplaySummary.to_dict`); empty for a run without.
    """

    command: tuple[str, ...]
    level: Level
    status: str
    exit_status: int | None = None
    failure: str = ""
    steps: int = 0
    torch: str = ""
    environment: dict[str, Any] = field(default_factory=dict)
    control: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    replay: dict[str, Any] = field(default_factory=dict)


def split_command(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the script without its folder, or `-m module`, and the arguments; empty for no command.

    Args:
        command: as in `RunInfo`.
    """
    if command[:1] == ("-m",):
        return " ".join(command[:2]), tuple(command[2:])
    return os.path.basename(command[0]) if command else "", tuple(command[1:])


def _ranges(positions: tuple[int, ...]) -> list[str]:
    ranges: list[list[int]] = []
    for position in positions:
        if ranges and position == ranges[-1][1] + 1:
            ranges[-1][1] = position
        else:
            ranges.append([position, position])
    return [f"{first}-{last}" if first != last else str(first) for first, last in ranges]


def _positions(words: list[str]) -> list[int]:
    positions: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        if positions and int(first) <= positions[-1]:  # ranges must grow: repeated ones would fill memory
            raise ValueError(word)
        positions += range(int(first), min(int(last or first), _MOST_TENSORS) + 1)
    return positions
