"""One recording: a writer, a recorder and the probes, put in place and taken away again."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from samebits._runtime.frames import calling_frame, is_of_compiler, is_own_call, pass_on
from samebits._runtime.imports import PostImport
from samebits._text.caches import cache_folder
from samebits._text.masking import Masker
from samebits._torch.core import COMPILER_RULES, hide_from_compiler
from samebits.environment import snapshot as environment
from samebits.environment.distributed import KEY as RANKS
from samebits.environment.loaded_code import LoadedCode
from samebits.recording._compiler_notes import compiler_notes
from samebits.recording._recorder import Recorder, TensorReader, recordable
from samebits.recording._scalars import ValueLog
from samebits.recording._steps import ReferenceLimit, StepLimit
from samebits.recording.data_digests import digest_read
from samebits.recording.noise import Noise
from samebits.recording.probes.data_files import DataFilesProbe
from samebits.recording.probes.draws import DrawProbe
from samebits.recording.probes.file_effects import EarlierFiles, EffectsProbe
from samebits.recording.probes.tap_events import TapProbe
from samebits.recording.run_signals import RunSignals
from samebits.recording.settings import VALUE_BYTES, RecordingSettings
from samebits.recording.terminal_row import Progress
from samebits.records.events import RETURNED, RunInfo
from samebits.records.kinds import EventKind, Level, Role
from samebits.records.notes import Note, NoteCode, RecordedPart
from samebits.records.writer import FLUSH_SECONDS, RecordWriter
from samebits.rng.active import PROCESS
from samebits.rng.sources import RECORDED, package_of
from samebits.switches.table import switch_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from samebits._runtime.frames import Site
    from samebits.recording.probes.assembly import ProbeSet

_MOST_NAMED = 5  # children, steps that did not repeat
_MOST_CHARACTERS = 80  # of a command


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """The end of a recorded run.

    Args:
        status: `finished`, `stopped` or `failed`.
        exit_status: as the shell would see it, None while unknown.
        failure: last line of the traceback, empty if none.
    """

    status: str
    exit_status: int | None = None
    failure: str = ""


class RecordingSession:
    """Records this process from `start` to `finish`.

    Probes are put in place right after torch is imported, so that a script which sets environment variables
    before it imports torch finds torch as it expects.

    Args:
        settings: how to record.
        command: the script or `-m module` and its arguments.

    Attributes:
        steps: counts the steps of the run, and ends it.

    Raises:
        SamebitsError: the record cannot be written.
    """

    def __init__(self, settings: RecordingSettings, command: tuple[str, ...]) -> None:
        self.settings = settings
        self._facts = environment.collect_at_start()
        info = RunInfo(command, settings.level, "running", environment=self._environment(self._facts))
        # Where each run is to allocate the same, nothing may be done by the clock.
        wait = math.inf if settings.fixes_addresses else FLUSH_SECONDS
        masker = Masker(command, os.environ, no_arguments=settings.no_arguments)
        self.writer = RecordWriter(
            settings.record, info, overwrite=settings.overwrite, masker=masker, flush_seconds=wait
        )
        self.recorder = Recorder(self.writer, settings)
        self.steps: Final = self.recorder.steps
        self.progress = Progress(self.recorder, settings.phase)
        self._imports = PostImport()
        self._probes: ProbeSet | None = None
        self._draws = DrawProbe(self.recorder)
        self._taps = TapProbe(self.recorder)
        self._own = _own_paths(settings)
        self._earlier = None if settings.earlier is None else EarlierFiles(settings.earlier, self._own)
        self._installed: list[
            ProbeSet | DrawProbe | EarlierFiles | EffectsProbe | DataFilesProbe | TapProbe
        ] = []
        watched = settings.inventory is not None and settings.inventory.data
        self._data = DataFilesProbe(_beside(settings, "data-read"), self._own) if watched else None
        self._folder = _working_folder()
        self._code = LoadedCode(_script_of(command))
        self._mask_patch = masker.patch
        self._values = ValueLog(self.recorder, settings.values) if settings.values else None
        self._unrecorded: dict[str, Site | None] = {}
        self._mismatches: list[Note] = []
        self._changed: tuple[str, ...] = ()
        noise = settings.scheduling_noise
        self._noise = Noise(noise, self.recorder.quietly) if noise else None

    def start(self) -> None:
        """Begin to record."""
        settings, recorder = self.settings, self.recorder
        recorder.steps.listen(self._at_first_step)
        if settings.max_steps is not None:
            recorder.steps.listen(StepLimit(recorder, settings.max_steps))
        if settings.reference:
            limit = ReferenceLimit(recorder, settings.reference, settings.excluded, self._reads_earlier)
            recorder.steps.listen(limit)
        if settings.progress:
            recorder.steps.listen(self.progress)
        if settings.effects:
            effects = EffectsProbe(settings.effects, self._own)
            recorder.steps.listen(effects)
            self._installed.append(effects)
            effects.install()
        if self._data is not None:
            self._installed.append(self._data)
            self._data.install()
        recorder.start()
        self._installed.append(self._taps)
        self._taps.install()
        PROCESS.recording = self
        self._imports.on_torch(self._install)
        for package in dict.fromkeys(map(package_of, RECORDED)):
            if package not in ("", "torch"):  # these are there when the probes are installed
                self._imports.on_import(package, lambda module: self._watch_seeding(module.__name__))
        self._imports.on_import(COMPILER_RULES, hide_from_compiler)
        if self._values is not None:
            self._values.install(self._imports)
        self._imports.install()
        if self._noise is not None:
            self._noise.start()

    def note_earlier_seeds(self) -> None:
        """Note that generators may have been seeded before recording began, and how torch's was."""
        if self._probes is not None:
            self._probes.note_earlier_seeds()

    def watch_draws(self) -> None:
        """Begin to record draws, once control, which draws from the run seed instead, is in place."""
        if self._earlier is not None:  # before the draws, which look at who calls
            self._installed.append(self._earlier)
            self._earlier.install()
        self._installed.append(self._draws)
        self._draws.install(self._imports)

    def finish(
        self,
        ending: Ending | None = None,
        control: dict[str, Any] | None = None,
        signals: RunSignals | None = None,
        *,
        single: bool = True,
    ) -> None:
        """Record the last state, take the probes away and close the record.

        Args:
            ending: how the run ended; by default it finished.
            control: what the record keeps of the control that the run was under.
            signals: that are kept back meanwhile; Ctrl-C leaves out what takes long.
            single: leave a single file; else whoever started this process does that (`fold`).
        """
        ending = ending or Ending("finished")
        if self._noise is not None:
            self._noise.stop()
        recorder = self.recorder
        read = None if self._data is None else self._data.paths()
        changed = () if self._data is None else self._data.changed()
        try:
            self._record_end()
        finally:
            recorder.stop()
            if PROCESS.recording is self:
                PROCESS.recording = None
            self.progress.clear()
            self._imports.remove()
            if self._values is not None:
                self._values.remove()
            while self._installed:  # last first: some replace the same function
                self._installed.pop().remove()
        torch, facts = sys.modules.get("torch"), self._facts_at_end()
        self.writer.update(
            status=ending.status,
            exit_status=ending.exit_status,
            failure=ending.failure,
            steps=recorder.step,
            torch=str(getattr(torch, "__version__", "")),
            environment=self._environment(facts),
            control=control or {},
            notes=self._notes(),
            replay=self._probes.replay_facts() if self._probes is not None else {},
        )
        if read is not None:  # last, because it may take long, and the run may be killed meanwhile
            with self._noted(RecordedPart.DATA_FILES):
                data = digest_read(read, self._folder, signals or RunSignals(), changed)
                self.writer.update(environment=self._environment(dataclasses.replace(facts, data=data)))
            self.writer.update(notes=self._notes())
        self.writer.close(single=single)

    def _reads_earlier(self) -> bool:
        """Tell whether the run has read files of an earlier one: then the next run is compared with it."""
        return self._earlier is not None and self._earlier.any

    def _record_end(self) -> None:
        self._draws.record_end()
        if self._probes is not None:
            self._probes.record_end()
        self.writer.flush()  # a GPU that fails now is noted

    def _facts_at_end(self) -> environment.Environment:
        inventory, script = self.settings.inventory, self._code.script
        facts = environment.collect(Path(script).parent if script else None, switch_values())
        if self._probes is not None:
            facts = environment.with_attention(facts, self._probes.attention())
        with self._noted(RecordedPart.INVENTORY):
            facts = dataclasses.replace(facts, code=self._code.collect())
            self._changed = self._code.changed()
        if inventory is not None:
            with self._noted(RecordedPart.INVENTORY):
                mask = self._mask_patch if inventory.changes else None
                facts = environment.with_inventory(facts, self._folder, script, mask)
        return facts

    def _at_first_step(self, *_state: object) -> None:
        """Read how torch was built, and the code that was imported: later, somebody may edit it."""
        if self.recorder.step == 1:
            facts = environment.with_build(self._facts, sys.modules["torch"])
            self.writer.update(environment=self._environment(facts))
            self._code.look()  # the probe that calls deals with errors, and with what a signal raises

    @contextlib.contextmanager
    def _noted(self, part: RecordedPart) -> Iterator[None]:
        """Note an error in the body: whatever the script did to the modules in use, its record is closed."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - see above
            pass_on(error)
            self.recorder.failures.add(part, error)

    @property
    def broken(self) -> str:
        """The reason why recording ended before the run did; empty if it did not."""
        return self.writer.broken

    def note_unrecorded(self, command: str) -> None:
        """Note a child that may train and is not recorded.

        Args:
            command: that starts it.
        """
        frame, sites = calling_frame(), self.recorder.sites
        if len(self._unrecorded) < _MOST_NAMED and not (is_own_call(frame) or is_of_compiler(frame)):
            self._unrecorded.setdefault(command, sites.known(sites.find(frame)))
            self.writer.update(notes=self._notes())  # the script may never come to its end

    def recorded_steps(self) -> int:
        """Return the number of step boundaries in the record."""
        return self.recorder.step

    def await_call(self) -> None:
        """Judge only the call that comes: of what is before it, record what may explain a difference."""
        self.recorder.await_call()

    def begin_call(self) -> None:
        """Begin to judge: the call is made now."""
        self.recorder.begin_call()

    def end_call(self) -> None:
        """Record the state that the call leaves, and nothing after it."""
        self._record_end()
        self.recorder.stop()

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which nothing is recorded."""
        return self.recorder.paused()

    def record_value(self, kind: EventKind, op: str, site: Site | None, parts: dict[str, Any]) -> None:
        """Record a value that the code leaves behind.

        Args:
            kind: of the event.
            op: what it is called in reports.
            site: the line that made it.
            parts: its tensors, by their names.
        """
        recorder, tensors = self.recorder, list(parts.values())
        if recorder.active and recordable(tensors):
            with recorder.recording(RecordedPart.SAVE):
                layout, digests = recorder.observe(Role.VALUE, tuple(parts), tensors)
                number = None if site is None else self.writer.site(site)
                recorder.event(kind, op, number, layout, digests, tensors)

    def record_returned(self, parts: dict[str, Any]) -> None:
        """Record what a function returned that a test judges.

        Args:
            parts: its tensors, by their names.
        """
        recorder, tensors = self.recorder, list(parts.values())
        if recorder.active and recordable(tensors):
            with recorder.recording(RecordedPart.SAVE):
                recorder.value(EventKind.SAVE, RETURNED, calling_frame(), tensors, tuple(parts))

    def note_mismatch(self, *facts: str) -> None:
        """Note that executions of one step did not give the same bits.

        Args:
            facts: the arguments of `NoteCode.STEP_NOT_REPEATED`.
        """
        if len(self._mismatches) < _MOST_NAMED:
            self._mismatches.append(Note.of(NoteCode.STEP_NOT_REPEATED, *facts))
            self.writer.update(notes=self._notes())  # the script may never come to its end

    def _environment(self, facts: environment.Environment | environment.StartFacts) -> dict[str, Any]:
        ranks = self.settings.ranks
        return {**facts.to_dict(), **({} if ranks is None else {RANKS: ranks.to_dict()})}

    def _install(self, torch: Any) -> None:
        # A record of a killed run has this of its environment; `finish` writes the rest.
        facts = environment.with_release(self._facts, torch)
        self.writer.update(torch=str(getattr(torch, "__version__", "")), environment=self._environment(facts))
        from samebits.digest import digest_many, observe_later, storage_addresses
        from samebits.recording.probes.assembly import ProbeSet

        self.recorder.set_reader(TensorReader(digest_many, observe_later, storage_addresses))
        self._probes = ProbeSet(self.recorder, self._taps)
        self._installed.append(self._probes)
        self._probes.install(torch)
        if self._noise is not None:
            self._noise.start_on_devices(torch)

    def _watch_seeding(self, package: str) -> None:
        if self._probes is not None:
            self._probes.watch_seeding(package)

    def _notes(self) -> tuple[Note, ...]:
        settings, notes = self.settings, []
        if settings.interventions:
            notes.append(Note.of(NoteCode.INTERVENTIONS, *settings.interventions))
        notes += compiler_notes(settings, compiles=self.recorder.seen.compiler)
        if self.recorder.unreadable:
            notes.append(Note.of(NoteCode.UNREADABLE_TENSORS, str(self.recorder.unreadable)))
        for command, site in self._unrecorded.items():
            at = "" if site is None else f"{os.path.basename(site.file)}:{site.line}"
            notes.append(Note.of(NoteCode.CHILD_NOT_RECORDED, _shortened(command), at))
        if self._changed:
            notes.append(Note.of(NoteCode.CODE_CHANGED, *self._changed))
        notes += self._mismatches if self._noise is None else [*self._mismatches, *self._noise.notes()]
        if self._probes is not None:
            notes += self._probes.notes()
        return (*notes, *self._taps.notes(), *self.recorder.failures.notes())


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _script_of(command: tuple[str, ...]) -> str:
    """Return the absolute path of the script that runs, empty for a module or a script that is no file."""
    path = os.path.abspath(command[0]) if command and command[0] != "-m" else ""
    return path if os.path.isfile(path) else ""


def _shortened(command: str) -> str:
    one_line = " ".join(command.split())
    return one_line if len(one_line) <= _MOST_CHARACTERS else f"{one_line[:_MOST_CHARACTERS]}…"


def _own_paths(settings: RecordingSettings) -> tuple[str, ...]:
    """Return the beginnings of samebits' own paths in a run.

    They are the record, files beside it, the reference, and what was computed before.
    """
    paths = map(os.path.abspath, filter(None, (_beside(settings, ""), settings.reference)))
    return *paths, os.path.join(os.path.abspath(cache_folder()), "")


def _beside(settings: RecordingSettings, ending: str) -> str:
    """Return the path of a file of samebits' own beside the record."""
    return f"{os.path.splitext(settings.record)[0]}.{ending}"


@contextlib.contextmanager
def record(
    path: str | Path,
    *,
    level: str = "step",
    overwrite: bool = True,
    tap_modules: Sequence[str] = (),
    values: bool = False,
) -> Iterator[Path]:
    """Record what this process does inside the `with` block.

    Args:
        path: the record to write.
        level: `step` (batches, losses, gradients, state at each optimizer step, reads, saves) or `op` (every
            dispatched op too).
        overwrite: replace a record that is there.
        tap_modules: patterns of the paths of modules whose outputs are recorded, `["*"]` for all, as if the
            script called `samebits.tap` on each.
        values: keep the elements of batches, losses, gradients and parameters, not only their digests.

    Yields:
        The path.

    Raises:
        SamebitsError: the record cannot be written.
        ValueError: there is no such level.
    """
    settings = RecordingSettings(
        record=str(path),
        level=Level(level),
        overwrite=overwrite,
        value_bytes=VALUE_BYTES,
        state_values=values,
        tap_modules=tuple(tap_modules),
    )
    session = RecordingSession(settings, tuple(sys.argv))
    session.start()
    session.note_earlier_seeds()
    session.watch_draws()
    try:
        yield Path(path)
    except BaseException as error:
        session.finish(Ending("failed", failure=f"{type(error).__name__}: {error}"))
        raise
    session.finish()
