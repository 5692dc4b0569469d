"""What `samebits show` prints."""

from __future__ import annotations

import json

from report_builders import event
from sentence_support import text_note

from samebits.records.events import RunInfo
from samebits.report import record as record_report
from samebits.report.run_facts import environment_lines, torch_line
from samebits.report.style import Style

INFO = RunInfo(
    command=("train.py", "--lr", "1"),
    level="step",
    status="stopped",
    exit_status=0,
    steps=40,
    torch="2.13.0",
    environment={"machine": "x86_64", "packages": {"numpy": "2.0"}, "torch": {"version": "2.13.0"}},
    notes=(text_note("a note"),),
)


def summary(steps: int = 40):
    """A record of some steps."""
    events = [event(n, step=n) for n in range(steps)]
    return record_report.summarize("a.sbr", 12345, INFO, events)


def test_summary_keeps_the_first_and_the_last_steps():
    """Whatever the length of the run, the table fits."""
    found = summary()

    assert (
        [s.step for s in found.first_steps],
        [found.last_steps[0].step, found.last_steps[-1].step],
    ) == ([0, 1, 2, 3, 4], [30, 39])
    assert (found.counts, found.n_values) == ({"step": 40}, 80)


def test_a_step_has_one_digest_per_role():
    """Another bit in one tensor changes the digest of its role only."""
    a = record_report.summarize("a", 1, INFO, [event(0)]).first_steps[0]
    other = event(0, digests=(bytes(16), bytes(range(16, 32))))
    b = record_report.summarize("b", 1, INFO, [other]).first_steps[0]

    assert a.digests["param"] != b.digests["param"]
    assert (a.digests["optimizer"], a.digests["grad"]) == (b.digests["optimizer"], "")


def test_text_fits_and_says_how_the_run_ended():
    """80 columns."""
    lines = record_report.render_text(summary(), Style(width=80)).splitlines()

    assert max(map(len, lines)) <= 80
    assert lines[0] == "record      a.sbr (12.3 kB, step level)"
    assert "status      stopped by samebits, exit status 0" in lines
    assert "events      step 40" in lines
    assert any(line.strip() == "..." for line in lines)


def test_a_killed_run_is_called_that():
    """Its record was never closed."""
    info = RunInfo(
        command=("train.py",), level="step", status="running", failure="killed by SIGKILL", exit_status=137
    )
    shown = record_report.render_text(record_report.summarize("a.sbr", 1, info, []), Style())

    assert "not closed, exit status 137, killed by SIGKILL" in shown


def test_json_has_what_the_text_has():
    """One object."""
    decoded = json.loads(record_report.render_json(summary()))

    assert (decoded["command"], decoded["steps"], decoded["events"]) == (
        ["train.py", "--lr", "1"],
        40,
        {"step": 40},
    )
    assert decoded["first_steps"][0]["digests"]["param"]


def test_events_are_a_line_each():
    """With step, site and the beginning of each digest."""
    lines = list(record_report.render_events([event(7, step=3)], Style(width=120)))

    assert len(lines) == 2
    for part in ("7", "3", "SGD.step", "train.py:12", "fc.weight=00010203"):
        assert part in lines[1]


def test_an_event_as_json():
    """Full digests and shapes."""
    decoded = json.loads(record_report.event_json(event(7)))

    assert decoded["tensors"][0] == {
        "role": "param",
        "name": "fc.weight",
        "dtype": "float32",
        "shape": [2, 4],
        "digest": bytes(range(16)).hex(),
    }


def test_what_ran_is_a_line():
    """The instructions that torch used, its threads and the GPU decide the bits."""
    gpu = {"name": "NVIDIA H100 80GB HBM3"}
    torch = {"capability": "AVX512", "threads": {"intra-op": 1}, "cuda": "13.0", "gpus": [gpu, gpu]}

    assert (
        torch_line("2.11.0", {"torch": torch}) == "2.11.0, AVX512, 1 thread, CUDA 13.0, NVIDIA H100 80GB HBM3"
    )
    assert torch_line("2.11.0", {}) == "2.11.0"
    assert torch_line("", {}) == "never imported"


def test_packages_are_counted_and_files_named():
    """A hundred packages with their contents would be a wall; `--json` has them."""
    files = {f"{n}.py": {"sha256": "ab" * 32, "size": 1, "count": 1} for n in range(10)}
    facts = {
        "distributions": {name: {"version": "1", "imported": name == "numpy"} for name in ("numpy", "six")},
        "code": files,
        "data": {"files": {"a.bin": {"sha256": "cd" * 32}}, "unread": ["b.bin"]},
        "source": None,
        "machine": {"cpus": 2},
    }

    lines = dict(environment_lines(facts))

    assert lines["installed"] == "2 packages, of which the run imported 1 (--json lists them)"
    assert lines["code"].startswith("0.py abababababab, 1.py")
    assert lines["code"].endswith("7.py abababababab, and 2 more")
    assert lines["data"] == (
        "a.bin cdcdcdcdcdcd; 1 data file has no digest (the record does not say why): "
        "b.bin (the record does not say why)"
    )
    assert lines["machine"] == "cpus=2"
    assert "source" not in lines
    facts["data"]["unread"] = {"b.bin": "skipped", "c.bin": "gone", "d.bin": "skipped"}
    facts["data"]["unlisted"] = {"skipped": 2000}
    assert dict(environment_lines(facts))["data"] == (
        "a.bin cdcdcdcdcdcd; 2,003 data files have no digest (2,002 skipped with Ctrl-C, "
        "1 gone at the end of the run): b.bin (skipped with Ctrl-C), c.bin (gone at the end of the run), "
        "d.bin (skipped with Ctrl-C)"
    )
    assert environment_lines({"data": {"files": {}, "unread": []}}) == []
    assert environment_lines({"code": "from elsewhere", "data": [1]}) == [
        ("code", "from elsewhere"),
        ("data", "1"),
    ]
