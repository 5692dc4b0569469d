"""The draw log, which turns values from outside torch into a limited number of `draw` events."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol

from samebits._runtime.frames import Asker, pass_on
from samebits.recording.sites import library_call
from samebits.records.events import Drawn
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from samebits.recording._guard import Failures
    from samebits.recording.sites import SiteFinder

Key = tuple[int, int]
"""An instruction: the id of its code and its offset."""

_MOST_EACH = 4  # events of one instruction in one step; later values are only counted
_SHOWN = 40  # characters of a value


class DrawSink(Protocol):
    """**Protocol:** an object that takes draws: a recorder, or its replacement in a worker process."""

    @property
    def failures(self) -> Failures:
        """The errors in probes."""

    @property
    def sites(self) -> SiteFinder:
        """Finds the lines of the user's code."""

    @property
    def active(self) -> bool:
        """True while draws are taken."""

    @property
    def step(self) -> int:
        """The step that runs."""

    @property
    def torch_seeds(self) -> bool:
        """True if torch has seeded the global generators of this process from a known seed."""

    def draw(self, drawn: Drawn, step: int) -> None:
        """Take one; the arguments are those of `Recorder.draw`."""


class Rest:
    """The values that an instruction draws in a step after the first few.

    Args:
        op: the function that gives them.
        site: the line.
    """

    __slots__ = ("chain", "count", "op", "site")

    def __init__(self, op: str, site: int | None) -> None:
        self.op = op
        self.site = site
        self.count = 0
        self.chain = 0

    def add(self, value: Any) -> None:
        """Take one more value in."""
        self.count += 1
        # The hash of numbers is the same in every process, that of text is not.
        number = value if isinstance(value, int | float) else int.from_bytes(digest_of(value), "little")
        self.chain = hash((self.chain, number))


class DrawLog:
    """Records draws.

    Args:
        sink: where draws go.
    """

    def __init__(self, sink: DrawSink) -> None:
        self._sink = sink
        self._asker = Asker()
        self.ranks = self._asker.ranks
        self.seen: set[Key] = set()  # instructions that drew from a global generator in this step
        self.counted: dict[Key, Rest] = {}  # instructions whose values are only counted in this step
        self._begun: dict[Key, int] = {}

    @property
    def active(self) -> bool:
        """True while this process is recorded."""
        return self._sink.active

    def write_to(self, sink: DrawSink) -> None:
        """Go on in a forked child, as at the beginning of a step.

        Args:
            sink: where draws go from now on.
        """
        self._sink = sink
        self.seen.clear()
        self.counted.clear()
        self._begun.clear()

    def end_step(self, *_: object) -> None:
        """Record the values that the step only counted, and begin the next."""
        self.flush(self._sink.step - 1)

    def flush(self, step: int) -> None:
        """Record the values that were only counted in a step."""
        self.seen.clear()
        self._begun.clear()
        if not self.counted:
            return
        counted = list(self.counted.values())
        self.counted.clear()
        for rest in counted:
            if rest.count:
                text = f"and {rest.count} more"
                self._sink.draw(Drawn(rest.op, rest.site, text, digest_of(rest.chain)), step)

    def taken_by_user(self, op: str, frame: FrameType, value: Any) -> None:
        """Record a value that the user's own code took: the rule for clocks and facts of the process.

        Args:
            op: what gave the value.
            frame: what called it, already known to be the user's.
            value: a number or text.
        """
        if self._sink.active:
            self._add(op, frame, value)

    def taken(self, op: str, frame: FrameType | None, value: Any, *, through: bool = False) -> None:
        """Record a value that the user's code, or a library on its behalf, took: the rule for entropy.

        Args:
            op: what gave the value; a function of the standard library that asked for it goes before.
            frame: what called it.
            value: anything with a repr that tells its contents.
            through: frames of samebits right at the beginning are other wrappers.
        """
        if not self._sink.active:
            return
        asked = self.asker(frame, op, through=through)
        if asked is not None:
            self._add(asked[1], asked[0], value, frame)

    def taken_by_call(self, op: str, frame: FrameType, state: Callable[[], bytes]) -> None:
        """Record a draw from a global generator by the state before it, once for each step and instruction.

        Args:
            op: the function.
            frame: what called it.
            state: reads the generator's state.
        """
        self.seen.add((id(frame.f_code), frame.f_lasti))
        if not self._sink.active or self._sink.torch_seeds:
            return
        asked = self.asker(frame, op)
        if asked is not None:
            self._record(op, asked[0], state(), frame)

    def asker(
        self, frame: FrameType | None, op: str, *, through: bool = False
    ) -> tuple[FrameType, str] | None:
        """Return the code for which a value is drawn and what it called; None for housekeeping."""
        return self._asker.find(frame, op, through=through)

    def at(self, op: str, site: int | None, value: Any) -> None:
        """Record a value at a site that is known already."""
        sink = self._sink
        if sink.active:
            sink.draw(Drawn(op, site, text_of(value), digest_of(value)), sink.step)

    def site(self, frame: FrameType) -> int | None:
        """Return the site of a frame."""
        return self._sink.sites.find(frame)

    def _add(self, op: str, frame: FrameType, value: Any, drawer: FrameType | None = None) -> None:
        key = id(frame.f_code), frame.f_lasti
        rest = self.counted.get(key)
        if rest is not None:
            rest.add(value)
            return
        begun = self._begun[key] = self._begun.get(key, 0) + 1
        self._record(op, frame, value, drawer)
        if begun == _MOST_EACH:
            self.counted[key] = Rest(op, self._sink.sites.find(frame))

    def _record(self, op: str, frame: FrameType, value: Any, drawer: FrameType | None) -> None:
        sink = self._sink
        try:
            call = library_call(self.ranks, drawer)
            library = "" if call is None else call.to_text()
            sink.draw(Drawn(op, sink.sites.find(frame), text_of(value), digest_of(value), library), sink.step)
        except Exception as error:  # noqa: BLE001 - not the script's: the script goes on
            pass_on(error)
            self._sink.failures.add(RecordedPart.DRAWS, error)


def digest_of(value: Any) -> bytes:
    """Return 16 bytes for a number, text, bytes, or a list of these."""
    data = value if isinstance(value, bytes) else repr(value).encode(errors="surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()


def text_of(value: Any) -> str:
    """Return a value in short for a report; empty where it is long."""
    if isinstance(value, bytes):
        return ""
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else ""
