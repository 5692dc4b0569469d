"""Runs that are not run and records that are not read: the order of a verification without its cost."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import finding_support
from sentence_support import text_reason

from samebits._runtime.frames import Site
from samebits.comparison.results import Comparison, Finding, OriginSearch
from samebits.recording.runner import Target
from samebits.records.events import Event, RunInfo, TensorInfo
from samebits.verification import ScriptRun, VerifyRequest
from samebits.verification._state import Tools

if TYPE_CHECKING:
    from collections.abc import Callable

IDENTICAL = Comparison("identical", None, 5, final_digest=("aa", "aa"))
SITE = Site("/w/train.py", 3, "main")


def finding(**fields) -> Finding:
    """An origin at event 7 of both runs."""
    values = {
        "step": 2, "op": "aten::randn.default", "site": SITE, "inputs_equal": True, "origin_kind": "rng",
        "events": (7, 7), "positions": (0,),
    }  # fmt: skip
    return finding_support.finding(**{**values, **fields})


def different(step: int = 2, *findings: Finding) -> Comparison:
    """Two runs that part at a step."""
    return Comparison(
        "different", text_reason(f"the state differs at step {step}"), step + 1, findings, first_step=step
    )


class FakeRecord:
    """A record with one op event of number 7 in step 2."""

    def __init__(self, info: RunInfo, captured: bytes) -> None:
        self.info = info
        self._captured = captured

    def events(self, kinds=(), first_step=None, last_step=None):
        """That event, or one step."""
        event = self.event(7)
        yield replace(event, kind="step", op="SGD.step") if "step" in kinds else event

    def event(self, seq: int) -> Event:
        """That event."""
        tensor = TensorInfo("out", "", "float32", (2,))
        return Event(7, "op", 2, "aten::randn.default", SITE, None, "", "", "", (tensor,), (b"\0" * 16,), ())

    def captures(self, seq: int) -> dict[int, bytes]:
        """What the run captured."""
        return {0: self._captured} if self._captured else {}

    def captured(self) -> dict[int, frozenset[int]]:
        """Which tensors were captured."""
        return {7: frozenset({0})} if self._captured else {}


@dataclass
class World:
    """Scripted results.

    Args:
        verdicts: by name of the second record; identical if not there.
        origins: by name of the second record.
        statuses: exit status by name of the record.
        infos: changes to the run's information, by name of the record.
        captured: captured bytes by name of the record.
        helps: sets of interventions with which runs are identical.
        sources: draws that differ before the runs part.
        seconds: how long a run takes.
        slow: names of the records whose runs had to be ended.
        on_run: told the name of each record.
    """

    verdicts: dict = field(default_factory=dict)
    origins: dict = field(default_factory=dict)
    statuses: dict = field(default_factory=dict)
    infos: dict = field(default_factory=dict)
    captured: dict = field(default_factory=dict)
    helps: tuple = ()
    sources: tuple = ()
    seconds: float = 1.0
    slow: set = field(default_factory=set)
    on_run: Callable[[str], None] = lambda _: None
    limits: dict = field(default_factory=dict)
    outputs: dict = field(default_factory=dict)
    made: list = field(default_factory=list)
    together: list = field(default_factory=list)
    perturbations: list = field(default_factory=list)
    judged_excluded: list = field(default_factory=list)
    explained: list = field(default_factory=list)
    until: list = field(default_factory=list)

    def tools(self) -> Tools:
        """The functions that verification uses."""
        return Tools(self.run_jobs, self.open_record, self.judge, self.find_origins, self.draws_before)

    def run_jobs(self, jobs) -> tuple[ScriptRun, ...]:
        """Note what was asked for."""
        self.together.append([Path(job.settings.record).stem for job in jobs])
        return tuple(map(self.run_job, jobs))

    def run_job(self, job) -> ScriptRun:
        """Note what was asked for in one run."""
        script, settings, purpose, perturbation = job.script, job.settings, job.purpose, job.perturbation
        name = Path(settings.record).stem
        self.made.append((name, settings))
        self.perturbations.append(perturbation)
        self.limits[name], self.outputs[name] = script.limit_s, script.output
        self.on_run(name)
        status, info = self.statuses.get(name, 0), self.info(name, settings.level)
        run = ScriptRun(purpose, settings.record, status, self.seconds, perturbation.stress, info)
        return replace(run, timed_out=name in self.slow)

    def info(self, name: str, level: str = "step") -> RunInfo | None:
        """What the record of that name says."""
        values = {"status": "finished", "exit_status": 0, "steps": 5, "torch": "2.13.0", "level": level}
        changes = self.infos.get(name, {})
        return None if changes is None else RunInfo(command=("train.py",), **{**values, **changes})

    @contextmanager
    def open_record(self, path):
        """A fake record."""
        name = Path(path).stem
        yield _named(FakeRecord(self.info(name), self.captured.get(name, b"")), name)

    def judge(self, a, b, excluded=()) -> Comparison:
        """The scripted verdict."""
        self.judged_excluded.append(tuple(excluded))
        list(a.events(("step", "read")))
        interventions = set(self.settings(b.name).interventions)
        if interventions and b.name not in self.verdicts:
            return IDENTICAL if any(needed <= interventions for needed in self.helps) else different()
        return self.verdicts.get(b.name, IDENTICAL)

    def find_origins(self, a, b, excluded=(), explained=(), until=None) -> OriginSearch:
        """The scripted origins."""
        self.explained.append(explained)
        self.until.append(until)
        return self.origins[b.name] if b.name in self.origins or not self.helps else OriginSearch()

    def draws_before(self, a, b, excluded=()):
        """The scripted sources."""
        return self.sources

    @property
    def names(self) -> list[str]:
        """Records in the order in which they were made."""
        return [name for name, _ in self.made]

    def settings(self, name: str):
        """How that run was recorded."""
        return dict(self.made)[name]


def _named(record: FakeRecord, name: str) -> FakeRecord:
    record.name = name
    return record


def request(folder: Path, **fields) -> VerifyRequest:
    """Verify train.py."""
    target = Target(script="train.py", module=None, arguments=())
    return VerifyRequest(target, folder, **{"one_at_a_time": True, **fields})
