"""Watch for drift: a switch or a generator that is changed after it was set, and who changes it.

Drift is noticed in two ways, because each misses something. Functions that write switches are wrapped,
which tells the site and finds a change that is undone before the next boundary. At boundaries all values are
compared, which finds writes that went past the wrappers.
"""

from __future__ import annotations

import os
import random
from collections import OrderedDict, deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.determinism.setter_wrappers import SetterWrappers, Writer, Writers
from samebits.rng.sources import BUILT_IN
from samebits.switches.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType

    from samebits._runtime.frames import Site
    from samebits._runtime.imports import PostImport
    from samebits.rng.sources.source import Position
    from samebits.switches.switch import Switch

_PENDING = 1000


class Drift(NamedTuple):
    """A switch or a generator that was changed after it was set.

    Args:
        step: the boundary at which it was noticed.
        what: the name of the switch, or `torch generator`.
        before: its expected value.
        now: its actual value.
        site: the nearest line of the user's code; None when the writer was not Python code.
        by: the line of an installed library that wrote, when it was not the user's own.
        lasting: False when it was undone before the boundary.
    """

    step: int
    what: str
    before: str
    now: str
    site: Site | None
    by: Site | None = None
    lasting: bool = True

    def text(self) -> str:
        """Return one line that describes it."""
        where = "an unknown line (not written by Python code)"
        if self.site is not None:
            where = f"{self.site.file}:{self.site.line}"
        if self.by is not None and self.by != self.site:
            where += f" (through {self.by.file}:{self.by.line})"
        past = "" if self.lasting else " temporarily"
        return f"{self.what} changed{past}: {self.before} -> {self.now}, at {where}, before step {self.step}"


class _Watched:
    """One switch that is watched."""

    def __init__(self, switch: Switch, expected: str, *, fixed: bool) -> None:
        self.switch = switch
        self.expected = expected
        self.last_seen = expected
        self.fixed = fixed
        self.writer: Writer | None = None

    def is_default_of_torch(self, writer: Writer) -> bool:
        """Tell whether torch itself set an unset variable to the value that it uses in that case.

        It sets `TORCHINDUCTOR_CACHE_DIR` like that when its compiler is imported, for instance by Lightning
        (torch/_inductor/runtime/cache_dir_utils.py, 2.13.0).
        """
        handle = self.switch.handle
        return not self.fixed and not self.expected and writer.torch and isinstance(handle, Variable)

    def keeps(self, value: str) -> bool:
        """Tell whether the value is allowed."""
        return value == self.expected or (self.fixed and self.switch.keeps(value))


class DriftWatch:
    """The watch over switches and the global generators.

    Args:
        rng: the generators are watched too.
        on: tells whether this watch is in charge, not the one of a later activation.
    """

    def __init__(self, *, rng: bool, on: Callable[[], bool] = lambda: True) -> None:
        self._on = on
        self._rng = RngWatch() if rng else None
        self._writers = Writers()
        self._wrappers = SetterWrappers(self)
        self._watched: dict[str, _Watched] = {}
        self._by_setter: dict[str, list[_Watched]] = {}
        self._probes: list[Any] = []
        self._values: list[Any] = []
        self._environment: dict[Any, Any] = {}
        self._rng_writer: Writer | None = None
        self._pending: deque[Drift] = deque(maxlen=_PENDING)
        self._seedings: list[tuple[Position | None, Drift]] = []
        self._told: set[tuple[str, str, Site | None]] = set()
        self._boundaries = 0

    def watch(self, switch: Switch, expected: str, *, fixed: bool) -> None:
        """Watch a switch from now on.

        Args:
            switch: its module is imported and the build has it.
            expected: the value that it has to have.
            fixed: control set it. Otherwise the script may still choose a value before the first boundary.
        """
        watched = self._watched[switch.name] = _Watched(switch, expected, fixed=fixed)
        for setter in switch.handle.setters:
            self._by_setter.setdefault(setter, []).append(watched)
        probe = switch.handle.probe()
        if probe is not None:
            self._probes.append(probe)
            self._values.append(probe())

    def install(self, imports: PostImport) -> None:
        """Start watching who writes environment variables, and who seeds; torch is not among them yet.

        Args:
            imports: calls when a library is imported.
        """
        self._wrappers.install_variables()
        self._environment = _variables().copy()
        for source in BUILT_IN:
            if source.functions and not source.module:
                self._wrappers.install_source(source, random)
            elif source.functions and source.module != "torch":
                imports.on_import(source.module, partial(self._wrappers.install_source, source))
        if self._rng is not None:
            self._rng.begin()

    def install_torch(self, torch: ModuleType) -> None:
        """Start watching who writes torch's switches, given torch; after `watch` of its switches."""
        self._wrappers.install_torch(torch, list(self._by_setter))

    def remove(self) -> None:
        """Stop watching, and forget what was watched."""
        self._wrappers.remove()
        self._watched.clear()
        self._by_setter.clear()
        self._probes.clear()
        self._values.clear()
        self._pending.clear()
        self._seedings.clear()
        self._told.clear()
        self._boundaries = 0

    def rebase(self) -> None:
        """Forget the generators' past, because a resumed training moved them on purpose."""
        if self._rng is not None:
            self._rng.begin()

    def check(self, step: int) -> tuple[Drift, ...]:
        """Return the changes since the last boundary, each once. Takes some microseconds when there are none.

        Args:
            step: the number of this boundary.
        """
        drifts: list[Drift] = []
        if [probe() for probe in self._probes] != self._values or self._environment != _variables():
            drifts = self._changes(step)
        if self._pending or self._seedings:
            drifts += self._undone(step, {drift.what for drift in drifts})
        if self._rng is not None:
            rewinds = self._rng.note(f"step {step}")
            drifts += [_rewind_drift(rewind, step, self._rng_writer or Writer(None)) for rewind in rewinds]
            self._rng_writer = None
        self._boundaries += 1
        return tuple(drifts)

    def accept(self, name: str) -> None:
        """Accept the present value of a switch that was set back."""
        watched = self._watched[name]
        watched.last_seen = watched.expected
        self._values = [probe() for probe in self._probes]
        self._environment = _variables().copy()

    def _changes(self, step: int) -> list[Drift]:
        drifts = []
        self._values = [probe() for probe in self._probes]
        self._environment = _variables().copy()
        for watched in self._watched.values():
            drift = self._change(watched, step)
            if drift is not None:
                drifts.append(drift)
        return drifts

    def _change(self, watched: _Watched, step: int) -> Drift | None:
        now = watched.switch.handle.read()
        if now == watched.last_seen:
            return None
        watched.last_seen = now
        writer = watched.writer or Writer(None)
        if not watched.fixed and not self._boundaries and writer.direct:
            watched.expected = now  # the script's own choice, made during its set-up
        elif watched.is_default_of_torch(writer):
            watched.expected = now
        if watched.keeps(now):
            return None
        return Drift(step, watched.switch.name, watched.expected, now, writer.site, writer.by)

    def _undone(self, step: int, lasting: set[str]) -> list[Drift]:
        pending = [*self._pending, *(drift for _, drift in self._seedings)]
        self._pending.clear()
        self._seedings.clear()
        return [drift._replace(step=step) for drift in pending if drift.what not in lasting]

    # The wrappers call these.

    def wrote(self, setter: str, frame: FrameType) -> None:
        """Note who called a setter of torch, and whether that broke a value that control set."""
        writer = self._writers.of(frame)
        if writer.own or not self._on():
            return
        for watched in self._by_setter.get(setter, ()):
            self._note_write(watched, writer)

    def wrote_variable(self, name: str, frame: FrameType) -> None:
        """Note who is writing an environment variable."""
        watched = self._watched.get(name)
        if watched is None or not isinstance(watched.switch.handle, Variable):
            return
        writer = self._writers.of(frame)
        # Control's calls may import more of torch, which itself writes variables.
        if (writer.torch or not writer.own) and self._on():
            watched.writer = writer

    def _note_write(self, watched: _Watched, writer: Writer) -> None:
        now = watched.switch.handle.read()
        if now != watched.last_seen:
            watched.writer = writer
        if not watched.fixed or watched.keeps(now):
            return
        name = watched.switch.name
        key = (name, now, writer.by or writer.site)
        if key not in self._told:
            self._told.add(key)
            drift = Drift(0, name, watched.expected, now, writer.site, writer.by, lasting=False)
            self._pending.append(drift)

    def positions(self) -> dict[str, Position]:
        """Return the positions of the generators."""
        return {} if self._rng is None else self._rng.positions()

    def seeded(self, before: dict[str, Position], frame: FrameType) -> None:
        """Note a call of a function that seeds; by a library, in the middle of a run, it is drift."""
        if self._rng is None or not self._on():
            return
        writer = self._writers.of(frame)
        for source, position in self._rng.positions().items():
            history = self._rng.histories.get(source)
            if history is None or position == before.get(source):
                continue
            earlier = history.earlier(position)
            if not writer.own and not writer.direct:
                drift = self._seeding(source, earlier, writer)
                if drift is not None and len(self._seedings) < _PENDING:
                    self._seedings.append((before.get(source), drift))
            history.move_to(position, "the last seeding")

    def _seeding(self, source: str, earlier: str, writer: Writer) -> Drift | None:
        if earlier:
            return _rewind_drift(Rewind(source, earlier), 0, writer)
        if not self._boundaries:
            return None
        return Drift(0, _generator(source), "its own stream", "seeded again", writer.site, writer.by)

    def restored(self, frame: FrameType) -> None:
        """Note a call of a function that sets a generator's state."""
        if self._rng is None or not self._on():
            return
        self._forgive_seedings()
        writer = self._writers.of(frame)
        self._rng_writer = writer
        if writer.own or writer.direct:
            self._rng.note("the last restored state")

    def _forgive_seedings(self) -> None:
        """Forget seedings by a library that put the generator back to its earlier position."""
        positions = self._rng.positions() if self._rng is not None and self._seedings else {}
        for source, position in positions.items():
            name = _generator(source)
            undone = [at == position for at, drift in self._seedings if drift.what == name]
            if self._rng is None or True not in undone:
                continue
            first = undone.index(True)
            others = [seeding for seeding in self._seedings if seeding[1].what != name]
            own = [seeding for seeding in self._seedings if seeding[1].what == name][:first]
            self._seedings = own + others
            self._rng.histories[source].at = position


def _generator(source: str) -> str:
    return f"{source} generator"


def _rewind_drift(rewind: Rewind, step: int, writer: Writer) -> Drift:
    now = f"back at its position of {rewind.earlier}, or before"
    return Drift(step, _generator(rewind.source), "continuing", now, writer.site, writer.by)


def _variables() -> dict[Any, Any]:
    """Return the environment variables as Python stores them; comparing them takes 0.3 microseconds."""
    variables: dict[Any, Any] = getattr(os.environ, "_data", None) or dict(os.environ)
    return variables


_REMEMBERED = 100_000


class Rewind(NamedTuple):
    """A generator that went back to an earlier position.

    Args:
        source: `torch`, `numpy`, `python`, `cuda:0`.
        earlier: the moment when it was there: `step 3`, `the seeding`.
    """

    source: str
    earlier: str


class PositionHistory:
    """The positions at which one generator has been."""

    def __init__(self) -> None:
        self.at: Position | None = None
        self._seen: OrderedDict[int, tuple[int, str]] = OrderedDict()

    def earlier(self, position: Position) -> str:
        """Return when the generator was there, or farther in the same numbers; empty when it never was."""
        farthest, when = self._seen.get(position[0], (-1, ""))
        return when if position[1] <= farthest else ""

    def move_to(self, position: Position, when: str) -> None:
        """Move to a position; when the generator went back, the positions ahead are forgotten."""
        self.at = position
        if self.earlier(position):
            self._seen.clear()
        if position[1] > self._seen.get(position[0], (-1, ""))[0]:
            self._seen[position[0]] = (position[1], when)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)


class RngWatch:
    """Notices that a global generator went back to an earlier position."""

    def __init__(self) -> None:
        # Devices first, which is also the order of the reports when several went back at once.
        readers = (source.position_reader() for source in reversed(BUILT_IN))
        self._readers = [read for read in readers if read is not dict]  # the others never have a position
        self.histories: dict[str, PositionHistory] = {}

    def positions(self) -> dict[str, Position]:
        """Return the position of every generator that can be read."""
        return {name: position for read in self._readers for name, position in read().items()}

    def begin(self) -> None:
        """Forget the past; the generators start from their present positions."""
        self.histories.clear()
        self.note("the start of control")

    def note(self, when: str) -> list[Rewind]:
        """Remember the position of every generator, and return those that went back."""
        rewinds = []
        for source, position in self.positions().items():
            history = self.histories.get(source)
            if history is None:
                history = self.histories[source] = PositionHistory()
            if position == history.at:
                continue
            earlier = history.earlier(position)
            if earlier:
                rewinds.append(Rewind(source, earlier))
            history.move_to(position, when)
        return rewinds
