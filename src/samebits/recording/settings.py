"""What a child process is told about the run that it records."""

from __future__ import annotations

import dataclasses
import json

from samebits.determinism.control import Control
from samebits.environment.ranks import RankFacts
from samebits.recording.substitution import Substitution

ENVIRONMENT_NAME = "SAMEBITS_SETTINGS"


@dataclasses.dataclass(frozen=True, slots=True)
class RecordingSettings:
    """How one run is recorded.

    Args:
        record: path of the record to write.
        level: `step`, `op`, or `clock` (nothing is recorded; the times of the steps go to `record` as JSON).
        first_op_step: ops are recorded from this step on.
        max_steps: stop the script at this many step boundaries.
        reference: another record; stop at the first step boundary whose state differs from it.
        excused: names of state tensors that are left out of that comparison.
        keep_bytes: keep what ops and loaders give until this many bytes; 0 keeps nothing.
        keep_from_step: from which step on.
        substitution: whose tensors are kept, or replaced by those that another run kept, if any.
        progress: show a live line on stderr.
        scheduling_noise: seed of a thread that disturbs scheduling; 0 is off.
        overwrite: replace an existing record.
        control: what seeds and switches the run is to have; None controls nothing.
        replay: how many times each op is executed again, on the same inputs and generator states; 0 is off.
        values: file that gets the values of losses, reads and logged metrics (see `values.ValueLog`); empty
            for none.
        pins: names of the pins that the run has (`determinism.pins`), beside `control`; their environment and
            address layout are for who starts the run to give.
        overlay: real path of a source file and path of the file whose text is run instead, for each file
            that a patch under trial changes (see `overlay.Overlay`).
        ranks: which process of a distributed run it is; None for a run of one process.
        state_log: file that gets, for each optimizer step, what a step-level record does not hold: the state
            before the step, hyperparameters, schedules, variables (see `state_log.StateLog`); empty for none.
        kill_after: the run kills itself (SIGKILL) right after this many optimizer steps.
    """

    record: str
    level: str = "step"
    first_op_step: int = 0
    max_steps: int | None = None
    reference: str = ""
    excused: tuple[str, ...] = ()
    keep_bytes: int = 0
    keep_from_step: int = 0
    substitution: Substitution | None = None
    progress: bool = False
    scheduling_noise: int = 0
    overwrite: bool = False
    control: Control | None = None
    values: str = ""
    replay: int = 0
    pins: tuple[str, ...] = ()
    overlay: tuple[tuple[str, str], ...] = ()
    ranks: RankFacts | None = None
    state_log: str = ""
    kill_after: int | None = None

    def to_json(self) -> str:
        """Text form, for the environment of a child process."""
        control = None if self.control is None else self.control.to_dict()
        return json.dumps({**dataclasses.asdict(self), "control": control})

    @classmethod
    def from_json(cls, text: str) -> RecordingSettings:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        fields["excused"] = tuple(fields["excused"])
        fields["pins"] = tuple(fields["pins"])
        if fields["substitution"] is not None:
            fields["substitution"] = Substitution.from_dict(fields["substitution"])
        fields["overlay"] = tuple((path, text) for path, text in fields["overlay"])
        fields["ranks"] = RankFacts.from_dict(fields.get("ranks"))
        if fields["control"] is not None:
            fields["control"] = Control.from_dict(fields["control"])
        return cls(**fields)
