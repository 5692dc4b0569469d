"""When two runs of a script may go on at the same time."""

from __future__ import annotations

import os
import time

import pytest
from fake_runs import World, different, finding, request

from samebits.comparison.results import Origins
from samebits.environment.usage import Usage
from samebits.verification import room as room_module
from samebits.verification import verify
from samebits.verification.room import Room


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
    monkeypatch.setattr(room_module, "read_usage", machine.usage)
    monkeypatch.setattr(room_module, "processors", lambda: 2.0)
    monkeypatch.setattr(room_module, "largest_child_bytes", lambda: 10**9)
    monkeypatch.setattr(room_module, "available_bytes", lambda: 5 * 10**9)
    return machine


def after_runs(folder, run=lambda folder: None, **options) -> Room:
    """A room after two compared runs."""
    room = Room(request(folder / "records", **{"one_at_a_time": False, **options}))
    for number in (1, 2):
        notes = room.notes(str(folder / "records" / f"run-{number}.sbr"))
        with room.measured():
            time.sleep(0.005)
            if number == 1:
                run(folder)
            if number == 2 and options.get("effect"):
                os.makedirs(os.path.dirname(notes), exist_ok=True)
                open(notes, "w").close()
    return room


def test_there_is_room_where_the_runs_touch_nothing(folder, machine):
    assert after_runs(folder).for_two()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "model.pt").write_text("saved by compiled code"),
        lambda folder: (folder / "train.py").write_text("changed"),
    ],
)
def test_a_changed_folder_leaves_none(folder, machine, change):
    assert not after_runs(folder, change).for_two()


def test_records_compiled_modules_and_own_output_are_no_change(folder, machine, monkeypatch):
    def run(folder):
        for name in ("records/x/a.sbr", "sub/__pycache__/a.pyc", ".samebits/b-verify-1/a.sbr", "out.txt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")

    status = os.fstat
    monkeypatch.setattr(os, "fstat", lambda number: status(number) if number != 1 else os.stat("out.txt"))
    assert after_runs(folder, run).for_two()


def test_a_folder_of_very_many_files_leaves_none(folder, machine, monkeypatch):
    monkeypatch.setattr(room_module, "_MOST_ENTRIES", 3)
    assert after_runs(folder).for_two()
    for number in range(3):
        (folder / str(number)).touch()
    time.sleep(0.02)
    assert not after_runs(folder).for_two()


def test_a_noted_effect_leaves_none(folder, machine):
    room = Room(request(folder / "records", one_at_a_time=False))
    notes = [room.notes(f"records/run-{number}.sbr") for number in (1, 2)]
    os.mkdir("records")
    for _ in notes:
        with room.measured():
            time.sleep(0.001)
    open(notes[0], "w").close()
    assert not room.for_two()
    room.close()
    assert os.listdir("records") == []


@pytest.mark.parametrize("options", [{"one_at_a_time": True}, {"fresh": True}])
def test_what_was_asked_for_leaves_none(folder, machine, options):
    room = after_runs(folder, **options)
    assert not room.for_two()
    assert room.notes("records/a.sbr") == ""


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
    assert after_runs(folder).for_two() is expected


@pytest.mark.parametrize(("left", "expected"), [(4 * 10**9, True), (4 * 10**9 - 1, False), (None, False)])
def test_memory_has_to_be_left(folder, machine, monkeypatch, left, expected):
    monkeypatch.setattr(room_module, "available_bytes", lambda: left)
    assert after_runs(folder).for_two() is expected


def test_there_is_none_where_the_system_does_not_tell(folder, machine, monkeypatch):
    monkeypatch.setattr(room_module, "read_usage", lambda: None)
    assert not after_runs(folder).for_two()
    assert not Room(request(folder / "records", one_at_a_time=False)).for_two()


@pytest.fixture
def spacious(monkeypatch):
    """There is room for two runs."""
    monkeypatch.setattr(Room, "for_two", lambda _: True)
    monkeypatch.setattr("samebits.verification.stdin.StandardInput.can_be_shared", lambda _: True)


def explaining(*helps, **fields) -> World:
    """Runs that differ, in whose explanation others are made."""
    found = finding(**fields)
    verdicts = {"run-2": different(2), "op-1b": different(2)}
    return World(verdicts=verdicts, origins={"op-1b": Origins((found,))}, helps=helps)


def test_pairs_that_explain_are_made_at_the_same_time(folder, spacious):
    world, told = explaining({"clock"}, cause="wall-clock", entry="outside"), []
    verify(
        request(folder / "r", one_at_a_time=False, progress=True), tools=world.tools(), announce=told.append
    )

    assert world.together[:4] == [["run-1"], ["run-2"], ["op-1a", "op-1b"], ["pinned-01", "pinned-02"]]
    pairs = [names for names in world.together if len(names) > 1]
    assert not any(world.settings(name).reference for names in pairs for name in names)
    assert [[world.settings(name).progress for name in names] for names in pairs[:2]] == [[True, False]] * 2
    assert [phase.text().split(" · ")[1] for phase in told[2:4]] == ["runs 3 and 4", "runs 5 and 6"]
    assert [name for name, settings in world.made if settings.effects] == ["run-1", "run-2"]


def test_runs_with_a_patch_are_made_at_the_same_time(folder, spacious):
    world = explaining(cause="unseeded-torch", entry="rng")
    verify(request(folder / "r", one_at_a_time=False), tools=world.tools())
    assert ["fix-1-1", "fix-1-2"] in world.together


def test_what_fails_at_the_same_time_has_failed(folder, spacious):
    world = explaining({"clock"}, cause="wall-clock", entry="outside")
    world.infos["pinned-01"] = {"status": "failed", "failure": "ValueError", "exit_status": 1}
    world.statuses["pinned-01"] = 1
    found = verify(request(folder / "r", one_at_a_time=False), tools=world.tools()).comparison.findings[0]
    assert ["pinned-01", "pinned-02"] in world.together
    assert found.confirmed_by.startswith("with the clock frozen and with")  # not that pin alone


def test_runs_with_fixed_addresses_are_told_the_same(folder, spacious, monkeypatch):
    monkeypatch.setattr("samebits.verification.series.can_fix_layout", lambda: True)
    world = explaining({"layout"}, cause="id-order", entry="outside")
    verify(request(folder / "r", one_at_a_time=False, progress=True), tools=world.tools())
    first, second = (world.settings(f"pinned-0{number}") for number in (1, 2))
    assert ["pinned-01", "pinned-02"] in world.together
    assert "layout" in first.pins
    assert (first.progress, first.phase) == (second.progress, second.phase) == (False, first.phase)


def test_one_after_the_other_the_second_stops_where_it_differs(folder):
    world = World(verdicts={"run-2": different(2), "op-1b": different(2)})
    verify(request(folder / "r"), tools=world.tools())
    assert ["op-1a"] in world.together
    assert world.settings("op-1b").reference.endswith("op-1a.sbr")
