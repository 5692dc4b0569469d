"""How the processes of several runs are started."""

from __future__ import annotations

from samebits.recording.launch import Outcome
from samebits.recording.runner import Target
from samebits.recording.settings import RecordingSettings
from samebits.verification import runs
from samebits.verification._concurrency import APART_S
from samebits.verification.runs import Job, Script, run_jobs


def test_runs_begin_so_far_apart_that_no_second_is_the_same(tmp_path, monkeypatch):
    """A seed made of the time of day would be the same in both otherwise."""
    asked = []

    def launch_all(requests, apart_s):
        asked.append((len(requests), apart_s))
        return tuple(Outcome(0, None) for _ in requests)

    monkeypatch.setattr(runs, "launch_all", launch_all)
    script = Script(Target("train.py", None, ()))
    run_jobs([Job(script, RecordingSettings(str(tmp_path / name))) for name in ("a", "b")])
    assert asked == [(2, APART_S)]
    assert APART_S > 1.0
