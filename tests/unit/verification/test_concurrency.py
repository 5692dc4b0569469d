"""When two runs of a script may go on at the same time."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest
from fake_runs import World, different, finding, request
from sentence_support import confirmed_by

from samebits.comparison.results import OriginSearch, Source
from samebits.environment.resources import Usage
from samebits.errors import SamebitsError
from samebits.verification import _concurrency as concurrency_module
from samebits.verification import verify
from samebits.verification._concurrency import Concurrency


class Machine:
    """What the system says: processor time passes by itself.

    Args:
        own: processors that the runs keep busy.
        others: processors that other programs keep busy.
    """

    def __init__(self, own: float = 1.0, others: float = 0.0) -> None:
        self.own, self.others = own, others

    def usage(self) -> Usage | None:
        """As `read_usage`."""
        now = time.monotonic()
        return Usage(now * self.own, now * (self.own + self.others))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    time.sleep(0.02)  # the clock of a file system is coarse
    return tmp_path


@pytest.fixture
def machine(monkeypatch):
    """Two processors, and memory enough; the script keeps one of them busy."""
    machine = Machine()
    monkeypatch.setattr(concurrency_module, "read_usage", machine.usage)
    monkeypatch.setattr(concurrency_module, "free_processors", lambda others: 2.0 - others)
    monkeypatch.setattr(concurrency_module, "largest_child_bytes", lambda: 10**9)
    monkeypatch.setattr(concurrency_module, "available_bytes", lambda: 5 * 10**9)
    return machine


def after_runs(folder, run=lambda folder: None, **options) -> Concurrency:
    """It after two compared runs."""
    concurrency = Concurrency(request(folder / "records", **{"one_at_a_time": False, **options}))
    for number in (1, 2):
        notes = concurrency.notes_for(str(folder / "records" / f"run-{number}.sbr"))
        with concurrency.measured():
            time.sleep(0.005)
            if number == 1:
                run(folder)
        if notes:
            write_note(notes, "none")
    return concurrency


def write_note(path: str, text: str) -> None:
    """What a run notes of its effects."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def test_there_is_room_where_the_runs_touch_nothing(folder, machine):
    assert after_runs(folder).allows_two()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "model.pt").write_text("saved by compiled code"),
        lambda folder: (folder / "train.py").write_text("changed"),
    ],
)
def test_a_changed_folder_leaves_none(folder, machine, change):
    assert not after_runs(folder, change).allows_two()


def test_records_compiled_modules_and_own_output_are_no_change(folder, machine, monkeypatch):
    def run(folder):
        for name in ("records/run-1.sbr", "sub/__pycache__/a.pyc", ".samebits/b-verify-1/a.sbr", "out.txt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")
        for name in ("env/pyvenv.cfg", "env/lib/x.py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")

    status = os.fstat
    monkeypatch.setattr(os, "fstat", lambda number: status(number) if number != 1 else os.stat("out.txt"))
    assert after_runs(folder, run).allows_two()


def test_a_script_may_write_beside_the_records(folder, machine):
    def run(folder):
        (folder / "records").mkdir(exist_ok=True)
        (folder / "records" / "model.pt").write_text("saved by compiled code")

    assert not after_runs(folder, run).allows_two()


def test_a_folder_of_very_many_files_leaves_none(folder, machine, monkeypatch):
    monkeypatch.setattr(concurrency_module, "_MOST_ENTRIES", 5)
    assert after_runs(folder).allows_two()
    for number in range(3):
        (folder / str(number)).touch()
    time.sleep(0.02)
    assert not after_runs(folder).allows_two()


@pytest.mark.parametrize("text", ["open", "none\nopen", "", None])
def test_a_noted_effect_leaves_none(folder, machine, text):
    """Nor does a run that did not come to say that it had none."""
    concurrency = Concurrency(request(folder / "records", one_at_a_time=False))
    notes = [concurrency.notes_for(f"records/run-{number}.sbr") for number in (1, 2)]
    for path in notes:
        with concurrency.measured():
            time.sleep(0.001)
        write_note(path, "none")
    assert concurrency.is_untouched()
    os.unlink(notes[0])
    if text is not None:
        write_note(notes[0], text)
    assert not concurrency.is_untouched()
    assert not concurrency.allows_two()
    concurrency.close()
    assert os.listdir("records") == []


@pytest.mark.parametrize("name", ["OMP_PROC_BIND", "KMP_AFFINITY"])
def test_threads_that_are_bound_leave_none(folder, machine, monkeypatch, name):
    """Both runs would be bound to the same processors."""
    monkeypatch.setenv(name, "true")
    assert not after_runs(folder).allows_two()
    monkeypatch.setenv("OMP_PROC_BIND", "false")
    monkeypatch.delenv("KMP_AFFINITY", raising=False)
    assert after_runs(folder).allows_two()


@pytest.mark.parametrize(
    ("op", "expected"),
    [("time.time", False), ("datetime.datetime.now", False), ("psutil.cpu_percent", False),
     ("time.perf_counter", True), ("random.random", True)],
)  # fmt: skip
def test_what_two_runs_may_find_equal_keeps_them_apart(folder, machine, op, expected):
    """The second, or the load of the machine, is the same for runs that begin together."""
    concurrency = after_runs(folder)
    assert concurrency.allows_two()
    concurrency.note_draws([Source(op, None, "wall-clock")])
    assert concurrency.allows_two() is expected
    concurrency.keep_apart()
    assert not concurrency.allows_two()


@pytest.mark.parametrize("options", [{"one_at_a_time": True}, {"fresh": True}])
def test_what_was_asked_for_leaves_none(folder, machine, options):
    concurrency = after_runs(folder, **options)
    assert not concurrency.allows_two()
    assert concurrency.notes_for("records/a.sbr") == ""


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        (1.0, 0.2, True),
        (1.2, 0.0, True),
        (1.0, 0.5, False),
        (1.3, 0.0, False),
        (0.4, 1.2, True),
        (2.0, 0, False),
    ],
)
def test_processors_have_to_be_free(folder, machine, own, others, expected):
    machine.own, machine.others = own, others
    assert after_runs(folder).allows_two() is expected


@pytest.mark.parametrize(("left", "expected"), [(4 * 10**9, True), (4 * 10**9 - 1, False), (None, False)])
def test_memory_has_to_be_left(folder, machine, monkeypatch, left, expected):
    monkeypatch.setattr(concurrency_module, "available_bytes", lambda: left)
    assert after_runs(folder).allows_two() is expected


def test_there_is_none_where_the_system_does_not_tell(folder, machine, monkeypatch):
    monkeypatch.setattr(concurrency_module, "read_usage", lambda: None)
    assert not after_runs(folder).allows_two()
    assert not Concurrency(request(folder / "records", one_at_a_time=False)).allows_two()


@pytest.fixture
def spacious(monkeypatch):
    """There is room for two runs."""
    monkeypatch.setattr(Concurrency, "allows_two", lambda concurrency: concurrency._allowed)
    monkeypatch.setattr(Concurrency, "is_untouched", lambda _: True)
    monkeypatch.setattr("samebits.verification.isolation.StandardInput.can_be_shared", lambda _: True)


def explaining(*helps, **fields) -> World:
    """Runs that differ, in whose explanation others are made."""
    found = finding(**fields)
    verdicts = {"run-2": different(2), "op-1b": different(2)}
    return World(verdicts=verdicts, origins={"op-1b": OriginSearch((found,))}, helps=helps)


def test_pairs_that_explain_are_made_at_the_same_time(folder, spacious):
    world, told = explaining({"clock"}, cause="wall-clock", origin_kind="outside"), []
    verify(
        request(folder / "r", one_at_a_time=False, progress=True), tools=world.tools(), announce=told.append
    )

    assert world.together[:4] == [["run-1"], ["run-2"], ["op-1a", "op-1b"], ["pinned-01", "pinned-02"]]
    pairs = [names for names in world.together if len(names) > 1]
    assert not any(world.settings(name).reference for names in pairs for name in names)
    assert [[world.settings(name).progress for name in names] for names in pairs[:2]] == [[True, False]] * 2
    assert [phase.text().split(" · ")[1] for phase in told[2:4]] == ["runs 3 and 4", "runs 5 and 6"]
    watched = [name for name, settings in world.made if settings.effects]
    assert watched == ["run-1", "run-2", *(name for names in pairs for name in names)]


def test_runs_with_a_patch_are_made_at_the_same_time(folder, spacious):
    world = explaining(cause="unseeded-torch", origin_kind="rng")
    verify(request(folder / "r", one_at_a_time=False), tools=world.tools())
    assert ["fix-1-1", "fix-1-2"] in world.together


@pytest.mark.parametrize("how", ["fails", "is late", "has an effect", "cannot be started"])
def test_where_one_of_two_fails_both_are_made_again(folder, spacious, monkeypatch, how):
    """One after the other, and so are all that follow."""
    world = explaining({"clock"}, cause="wall-clock", origin_kind="outside")
    if how == "fails":
        world.infos["op-1b"] = {"status": "failed", "failure": "ValueError", "exit_status": 1}
        world.statuses["op-1b"] = 1
    if how == "is late":
        world.slow.add("op-1a")
    if how == "has an effect":
        monkeypatch.setattr(Concurrency, "is_untouched", lambda _: False)
    if how == "cannot be started":
        world.on_run = lambda name: _refuse() if name == "op-1b" else None
    world.verdicts["op-1b-alone"], world.origins["op-1b-alone"] = different(2), world.origins["op-1b"]
    result = verify(request(folder / "r", one_at_a_time=False), tools=world.tools())
    assert world.together[2:6] == [["op-1a", "op-1b"], ["op-1a-alone"], ["op-1b-alone"], ["pinned-01"]]
    assert world.settings("op-1b-alone").reference.endswith("op-1a-alone.sbr")
    assert confirmed_by(result.comparison.findings[0]).startswith(
        "with the clock frozen, 1 pair of runs was identical"
    )
    crowded = [run.record for run in result.runs if run.purpose == "crowded"]
    assert len(crowded) == (0 if how == "cannot be started" else 2)


def _refuse():
    raise SamebitsError("no room for one more process", slug="child-start")


def test_runs_that_may_find_the_same_time_are_made_apart(folder, spacious):
    world = explaining({"clock"}, cause="wall-clock", origin_kind="outside")
    world.sources = (Source("time.time", None, "wall-clock"),)
    verify(request(folder / "r", one_at_a_time=False), tools=world.tools())
    assert all(len(names) == 1 for names in world.together)


def test_runs_without_an_end_are_made_one_after_the_other(folder, spacious):
    """Where one of the compared runs went on when the other ended, the second may have to be stopped."""
    world = explaining({"clock"}, cause="wall-clock", origin_kind="outside")
    world.verdicts["run-2"] = replace(different(2), first_step=None)
    verify(request(folder / "r", one_at_a_time=False), tools=world.tools())
    assert ["op-1a"] in world.together
    assert ["pinned-01", "pinned-02"] in world.together  # these have a limit of time


def test_runs_with_fixed_addresses_are_made_one_after_the_other(folder, spacious, monkeypatch):
    """Each run with that intervention is told the same: what is noted of effects would move the addresses."""
    monkeypatch.setattr("samebits.verification.series.can_fix_layout", lambda: True)
    world = explaining({"layout"}, cause="id-order", origin_kind="outside")
    verify(request(folder / "r", one_at_a_time=False, progress=True), tools=world.tools())
    first, second = (world.settings(f"pinned-0{number}") for number in (1, 2))
    assert "layout" in first.interventions
    assert ["pinned-01"] in world.together
    assert (first.effects, first.phase) == (second.effects, second.phase) == ("", first.phase)


def test_one_after_the_other_the_second_stops_where_it_differs(folder):
    world = World(verdicts={"run-2": different(2), "op-1b": different(2)})
    verify(request(folder / "r"), tools=world.tools())
    assert ["op-1a"] in world.together
    assert world.settings("op-1b").reference.endswith("op-1a.sbr")
