"""Control of a process: it sets seeds and switches, watches them, and puts them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.address_layout import UnlistedFolder
from samebits._runtime.frames import show_warning
from samebits._runtime.imports import PostImport
from samebits._torch.core import COMPILER_CONFIG
from samebits.determinism._drift import Drift, DriftWatch
from samebits.errors import SamebitsError
from samebits.rng.active import PROCESS, Active, required
from samebits.rng.seeds import check_seed
from samebits.switches.startup import LAYOUT
from samebits.switches.switch import Control
from samebits.switches.table import (
    DETERMINISTIC,
    FAILED,
    LOOSE_LAYOUT,
    MISSING,
    TOO_LATE,
    Setting,
    SwitchRow,
    wanted_by,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from samebits._runtime.frames import Site
    from samebits.rng.script_seeds import ScriptSeed

    Warn = Callable[[str, "Site | None"], None]

ON_DRIFT = ("warn", "error", "restore", "ignore")
REMEDY = "start the script with `samebits run --seed N script.py`, which sets them in time"


class ActivationReport(NamedTuple):
    """The report of an activation.

    Args:
        seed: the run seed of this process; None when RNG sources were left alone.
        switches: a row for each switch that is set or watched, in the order of the table.
        warnings: the texts of all warnings.
    """

    seed: int | None
    switches: tuple[SwitchRow, ...]
    warnings: tuple[str, ...]

    def named(self, name: str) -> SwitchRow:
        """Return the row of the switch.

        Raises:
            KeyError: it is neither set nor watched.
        """
        for row in self.switches:
            if row.name == name:
                return row
        raise KeyError(name)


class Activation:
    """An activation of a control in this process.

    Switches and generators belong to the process, so an activation acts on all its threads. Activations nest;
    each puts back the values from before it. If one is stopped while later ones still run, it puts its values
    back when the last of those has stopped.

    Args:
        control: the control to apply.
        fresh_process: this process was started for it, with the variables of `environment_for`.
        warn: called with each warning and the line that it is about; by default `warnings.warn_explicit` with
            `SamebitsWarning`.
    """

    def __init__(self, control: Control, *, fresh_process: bool, warn: Warn | None = None) -> None:
        if control.on_drift not in ON_DRIFT:
            message = f"on_drift is {control.on_drift!r}; expected one of {', '.join(ON_DRIFT)}"
            raise SamebitsError(message, slug="usage")
        self._control = control
        self._fresh = fresh_process
        self._tell = warn or show_warning
        self._settings = tuple(Setting(wanted) for wanted in wanted_by(control))
        self._imports = PostImport()
        self._watch = DriftWatch(rng=control.seed is not None, on=lambda: self._is_innermost)
        self._warnings: list[str] = []
        self._parts: list[Any] = []
        self._steps = 0
        self._active = Active(control, control.seed, changes=self)

    @property
    def running(self) -> bool:
        """Tell whether it was started and not stopped."""
        return self._active.running

    @property
    def _is_innermost(self) -> bool:
        return PROCESS.innermost is self._active

    @property
    def report(self) -> ActivationReport:
        """The report, with the values that the switches have at this moment."""
        rows = tuple(setting.row() for setting in self._settings)
        seed = None if PROCESS.current is None else PROCESS.current.seed
        return ActivationReport(seed, rows, tuple(self._warnings))

    def start(self) -> None:
        """Set what can be set now, and the rest when its module is imported. Imports nothing heavy.

        Raises:
            SamebitsError: from an RNG source; everything is put back first.
        """
        if self.running:
            return
        self._warnings.clear()
        self._steps = 0
        self._active = Active(self._control, self._control.seed, changes=self)
        # Without a seed, the seed that is in force stays.
        PROCESS.push(self._active, governs=self._control.seed is not None)
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Put everything back. Does nothing when it is not running."""
        if self.running:
            PROCESS.drop(self._active)

    @property
    def script_seeds(self) -> tuple[ScriptSeed, ...]:
        """The seeds that the script set itself."""
        return tuple(seed for part in self._parts for seed in getattr(part, "seen", ()))

    def on_torch(self, callback: Callable[[ModuleType], None]) -> None:
        """Call back with torch once it is imported and its switches are set; at once if they are."""
        self._imports.on_torch(callback)

    def add_part(self, part: Any) -> None:
        """Call `part.remove()` when everything is put back, in reverse order."""
        self._parts.append(part)

    def check(self, step: int | None = None) -> tuple[Drift, ...]:
        """Compare everything that is watched with its expected value, and act as `Control.on_drift` says.

        Takes some microseconds when nothing changed. Only the latest running activation watches.

        Args:
            step: the number of this boundary; by default they are counted from 1.

        Returns:
            The changes since the last call.

        Raises:
            SamebitsError: something did, and `on_drift` is `error`; `drift`.
        """
        self._steps += 1
        if self._control.on_drift == "ignore" or not self._is_innermost:
            return ()
        drifts = self._watch.check(self._steps if step is None else step)
        if drifts:
            self._act(drifts)
        return drifts

    def rebase(self) -> None:
        """Take the present positions of the generators as intended, after a resumed training set them."""
        self._watch.rebase()

    def undo(self) -> None:
        """Put back the values from before; called when no later activation runs."""
        self._watch.remove()
        self._imports.remove()
        for part in reversed(self._parts):
            part.remove()
        self._parts.clear()
        for problem in [setting.put_back() for setting in self._settings]:
            if problem:
                self._warn(problem)

    def _begin(self) -> None:
        self._imports.install()
        self._apply("")
        self._warn_of_lateness()
        if self._active.governs:
            self._seed(self._active)
            self._install_parts(self._active)
        self._watch.install(self._imports)  # on top of the parts' patches, so that it is removed first
        self._imports.on_torch(self._with_torch)
        self._imports.on_import(COMPILER_CONFIG, self._with_compiler)

    def _seed(self, active: Active) -> None:
        if self._control.seed is None:
            return
        from samebits.rng.states import current_rank, rank_seed, seed_sources, sources

        seed = check_seed(self._control.seed)
        active.reseed(rank_seed(seed, current_rank()) if self._control.per_rank else seed, seed)
        start = required(active.source_seed)
        among = [source for source in sources() if self._control.seeds(source.name)]
        seed_sources(start, among)

    def _install_parts(self, active: Active) -> None:
        parts, loaders = _parts(active)
        for part in parts:
            part.install()
            self._parts.append(part)

        def with_torch(torch: ModuleType) -> None:
            loaders.install(torch)
            self._parts.append(loaders)

        self._imports.on_torch(with_torch)

    def _with_torch(self, torch: ModuleType) -> None:
        self._apply("torch")
        if any(
            each.switch.name == DETERMINISTIC and each.wanted not in {None, "off"} for each in self._settings
        ):
            from samebits.deterministic_kernels.registration import DeterministicKernels

            kernels = DeterministicKernels()
            self._parts.append(kernels)
            kernels.install()
        self._watch.install_torch(torch)

    def _with_compiler(self, _: ModuleType) -> None:
        self._apply(COMPILER_CONFIG)

    def _apply(self, module: str) -> None:
        """Set and read back the switches that live in that module."""
        settings = [setting for setting in self._settings if setting.switch.handle.module == module]
        for setting in settings:
            setting.begin()
        for setting in settings:
            setting.apply()
        for setting in settings:
            setting.settle()
            if setting.watched:
                self._watch.watch(setting.switch, setting.now, fixed=setting.wanted is not None)
            self._warn_of(setting)

    def _warn_of(self, setting: Setting) -> None:
        name = setting.switch.name
        if setting.state == FAILED:
            self._warn(f"the switch {name} could not be set to {setting.wanted}: {setting.why}")
        elif (
            setting.state == MISSING and setting.switch is LAYOUT and not (self._fresh or self._control.scope)
        ):
            self._warn(f"{LOOSE_LAYOUT}: {setting.why}")
        elif setting.state == MISSING and setting.explicit:
            self._warn(f"the switch {name}, which you asked for, cannot be set: {setting.why}")
        elif setting.replaced:
            self._warn(f"{name}={setting.before} is replaced by {setting.now}: {setting.switch.why}")

    def _warn_of_lateness(self) -> None:
        late = [setting for setting in self._settings if setting.state == TOO_LATE]
        if not late:
            return
        rows = "; ".join(f"{setting.switch.name} ({setting.why}: {setting.switch.why})" for setting in late)
        self._warn(f"it is too late in this process to set {rows}; {REMEDY}")

    def _warn(self, message: str, site: Site | None = None) -> None:
        self._warnings.append(message)
        self._tell(message, site)

    def _act(self, drifts: tuple[Drift, ...]) -> None:
        if self._control.on_drift == "error":
            message = "; ".join(drift.text() for drift in drifts) + "; nothing may change after control began"
            raise SamebitsError(message, slug="drift")
        for drift in drifts:
            ending = self._set_again(drift) if self._control.on_drift == "restore" else ""
            self._warn(drift.text() + ending, drift.by or drift.site)

    def _set_again(self, drift: Drift) -> str:
        for setting in self._settings:
            if setting.switch.name == drift.what:
                setting.set_again()
                self._watch.accept(drift.what)
                return f"; samebits has set it to {setting.now} again"
        return "; a generator cannot be set back, because its numbers have been used"


def _parts(active: Active) -> tuple[list[Any], Any]:
    """Return the other parts of control: those to install now, and the control of data loaders."""
    from samebits.dataloading.loaders import LoaderControl
    from samebits.determinism.processes import ChildProcesses
    from samebits.rng.script_seeds import ScriptSeeds
    from samebits.rng.unseeded_generators import GeneratorControl

    parts: list[Any] = [GeneratorControl(active), ChildProcesses(active), ScriptSeeds(active)]
    if active.control.pins:
        from samebits.interventions.plan import ActiveInterventions

        parts.append(ActiveInterventions(active.control.pins))
    return parts, LoaderControl(active)


def begin_in_child(control: dict[str, Any], unlisted: Sequence[str] = ()) -> Activation:
    """Begin control in a process that was started afresh, before the script is imported there.

    Args:
        control: the parent's control, as `Control.to_dict()` gave it.
        unlisted: folders that the child does not list when it looks for modules.
    """
    for folder in unlisted:
        UnlistedFolder(folder).install()
    activation = Activation(Control.from_dict(control), fresh_process=False)
    activation.start()
    return activation
