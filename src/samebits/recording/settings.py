"""The settings that a child process gets for the run that it records."""

from __future__ import annotations

import dataclasses
import json

from samebits._text import variable_names
from samebits.environment.distributed import RankFacts
from samebits.recording.substitution import Substitution
from samebits.records.kinds import Level
from samebits.switches.switch import Control

ENVIRONMENT_NAME = variable_names.SETTINGS
VALUE_BYTES = 512 * 1_000_000
"""How many bytes of values a record of `run` or of `samebits.record` has at most."""


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """What a record holds for another machine that repeats its run, beside packages and digests of the code.

    Args:
        changes: what was changed since the commit, as a patch.
        data: digests of the data files that the run read.
    """

    changes: bool = True
    data: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class EarlierRun:
    """The time in which an earlier run of the same script was going on.

    Args:
        notes: file that gets what is read of what that run wrote.
        since: when it began, in nanoseconds of the system's clock.
        until: when it had ended.
    """

    notes: str
    since: int
    until: int


@dataclasses.dataclass(frozen=True, slots=True)
class RecordingSettings:
    """The settings by which one run is recorded.

    Args:
        record: path of the record to write.
        level: how much is recorded; at `Level.CLOCK` the times of the steps go to `record` as JSON.
        first_op_step: ops are recorded from this step on.
        max_steps: stop the script at this many step boundaries.
        reference: another record; stop at the first step boundary whose state differs from it.
        excluded: names of state tensors that are left out of that comparison.
        keep_bytes: keep what ops and loaders give until this many bytes; 0 keeps nothing.
        keep_elements: keep at most so many elements of a tensor, spread over it; 0 keeps all.
        keep_from_step: from which step on.
        substitution: the values that are kept, or replaced by those that another run kept, if any.
        progress: show the step and the seconds in the last row of the terminal.
        phase: which run it is, in words, for that row.
        scheduling_noise: seed of a thread that disturbs scheduling; 0 is off.
        overwrite: replace an existing record.
        no_arguments: keep none of the script's arguments in the record.
        control: the seeds and switches that are set for the run; None for none.
        replay: how many times each op is executed again, on the same inputs and generator states; 0 is off.
        values: file that gets the values of losses, reads and logged metrics (see `ValueLog`); empty for
            none.
        interventions: names of the run's interventions beside `control`; whoever starts it gives it their
            environment and address layout.
        overlay: real path of a source file and path of the file whose text is run instead, for each file that
            a patch under trial changes (see `Overlay`).
        ranks: which process of a distributed run it is; None for a run of one process.
        state_log: file that gets, for each optimizer step, what a step-level record does not hold: the state
            before the step, hyperparameters, schedules, variables (see `probes.state_log`); empty for none.
        earlier: an earlier run whose files are watched; a run that reads one does not stop at a difference
            from `reference`.
        effects: file that gets a note of whether the run changes or takes anything outside of itself (see
            `EffectsProbe`); empty if it is not watched.
        moved: the folder in which the script runs, and the user's own of which it is a copy.
        value_bytes: keep the elements of tapped values until this many bytes; 0 keeps digests only.
        state_values: keep those of batches, losses, gradients, parameters and optimizer states too.
        tap_modules: patterns of the paths of modules whose outputs are recorded as taps (`encoder.*`).
        inventory: what the record holds for another machine that repeats the run; None for nothing, as in a
            verification, whose runs are all on one machine.
        count_reads: until the script trains, each value that it reads counts as a step. For further runs of a
            script that is known never to train: without it, there are no steps by which to ask for a part.
        kill_after: the run kills itself (SIGKILL) right after this many optimizer steps.
        child: whether it is a process that the recorded script started; its record is kept if it trains.
        shown_as: what the user calls the record in the line that the run prints at its end; empty for none.
    """

    record: str
    level: Level = Level.STEP
    first_op_step: int = 0
    max_steps: int | None = None
    reference: str = ""
    excluded: tuple[str, ...] = ()
    keep_bytes: int = 0
    keep_elements: int = 0
    keep_from_step: int = 0
    substitution: Substitution | None = None
    progress: bool = False
    phase: str = ""
    scheduling_noise: int = 0
    overwrite: bool = False
    no_arguments: bool = False
    control: Control | None = None
    values: str = ""
    replay: int = 0
    interventions: tuple[str, ...] = ()
    overlay: tuple[tuple[str, str], ...] = ()
    ranks: RankFacts | None = None
    state_log: str = ""
    kill_after: int | None = None
    earlier: EarlierRun | None = None
    effects: str = ""
    moved: tuple[str, str] | None = None
    child: bool = False
    shown_as: str = ""
    count_reads: bool = False
    inventory: Inventory | None = None
    value_bytes: int = 0
    state_values: bool = False
    tap_modules: tuple[str, ...] = ()

    @property
    def fixes_addresses(self) -> bool:
        """True if objects are to have the same addresses in each run."""
        if self.control is None or "layout" in self.interventions:
            return "layout" in self.interventions
        from samebits.switches.table import holds_layout

        return holds_layout(self.control)

    def to_json(self) -> str:
        """Return the settings as text, for the environment of a child process."""
        fields = dataclasses.asdict(self)
        fields["control"] = None if self.control is None else self.control.to_dict()
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> RecordingSettings:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        fields["level"] = Level(fields["level"])
        if fields["inventory"] is not None:
            fields["inventory"] = Inventory(**fields["inventory"])
        fields["excluded"] = tuple(fields["excluded"])
        fields["interventions"] = tuple(fields["interventions"])
        fields["tap_modules"] = tuple(fields["tap_modules"])
        if fields["substitution"] is not None:
            fields["substitution"] = Substitution.from_dict(fields["substitution"])
        fields["overlay"] = tuple((path, text) for path, text in fields["overlay"])
        fields["ranks"] = RankFacts.from_dict(fields.get("ranks"))
        fields["moved"] = None if fields["moved"] is None else tuple(fields["moved"])
        if fields["earlier"] is not None:
            fields["earlier"] = EarlierRun(**fields["earlier"])
        if fields["control"] is not None:
            fields["control"] = Control.from_dict(fields["control"])
        return cls(**fields)
