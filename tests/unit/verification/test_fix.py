"""Looking for a patch: what is tried, in which order, and when the search ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_runs import IDENTICAL, World, different, finding

from samebits._runtime.frames import Site
from samebits.comparison.results import LineChange, Remedy, RemedyTrial
from samebits.diagnosis.patches.edits import Patch, PatchedFile, SourceFile
from samebits.errors import SamebitsError
from samebits.recording.runner import Target
from samebits.recording.settings import RecordingSettings
from samebits.report.reasons import sentence_or_none
from samebits.report.remedy import _confirmed
from samebits.verification import VerifyRequest
from samebits.verification._fix import MOST_ROUNDS, Aim, find_fix
from samebits.verification._state import Runner
from samebits.verification.plans import Plan
from samebits.verification.results import Fix
from samebits.verification.series import Series
from samebits.verification.user_files import main_file, project_root, read_project

SCRIPT = """\
import random
import numpy as np
import torch

x = list(set(words))
y = np.random.default_rng()
"""


@pytest.fixture
def script(tmp_path):
    """A script with two faults."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def origin(script, line: int, cause: str, **fields):
    return finding(site=Site(str(script), line, "f"), cause=cause, **fields)


def fix(world: World, script, *findings):
    request = VerifyRequest(Target(str(script), None, ()), script.parent / "records", one_at_a_time=True)
    series = Series(request, run_jobs=world.run_jobs)
    return find_fix(Runner(series, world.tools()), Aim(different(2, *findings)))


def text_run(world: World, name: str) -> str:
    """The text that stood for the script in a run."""
    ((_, path),) = world.settings(name).overlay
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_a_patch_is_confirmed_by_pairs_and_the_file_stays(script):
    world = World()
    found = fix(world, script, origin(script, 5, "hash-order"))
    assert found.confirmed
    assert _confirmed(found) == "confirmed by 3 pairs"
    assert world.names == ["fix-1-1", "fix-1-2", "fix-1-3", "fix-1-4"]
    assert "x = sorted(set(words))" in text_run(world, "fix-1-1")
    assert script.read_text() == SCRIPT
    assert b"+x = sorted(set(words))" in found.diff
    assert found.patch.first == ("x = list(set(words))", "x = sorted(set(words))")


def test_later_runs_stop_where_they_differ_from_the_first(script):
    world = World()
    fix(world, script, origin(script, 6, "unseeded-numpy"))
    assert world.names == ["fix-1-1", "fix-1-2"]  # chance has many bits: one pair says it
    assert world.settings("fix-1-1").reference == ""
    assert world.settings("fix-1-2").reference.endswith("fix-1-1.sbr")


def test_another_origin_is_patched_as_well(script):
    still = origin(script, 6, "unseeded-numpy", op="aten::mul.Tensor")
    world = World(
        verdicts={"fix-1-2": different(2, still), "fix-1-op-1b": different(2, still)},
        origins={"fix-1-op-1b": origins(still)},
    )
    found = fix(world, script, origin(script, 5, "hash-order"))
    assert found.confirmed
    assert "sorted(set(words))" in text_run(world, "fix-2-1")
    assert "default_rng(0)" in text_run(world, "fix-2-1")
    assert found.diff.count(b"\n+") == 3  # the name of the file and two lines


def test_the_same_origin_is_not_confirmed_and_named(script):
    same = origin(script, 6, "unseeded-numpy")
    verdicts = {f"fix-{n}-{run}": different(2, same) for n in range(1, 7) for run in ("2", "op-1b")}
    world = World(verdicts=verdicts, origins={f"fix-{n}-op-1b": origins(same) for n in range(1, 7)})
    found = fix(world, script, same)
    assert found.confirmed is False
    assert _confirmed(found) == f"not confirmed: still differs at {script}:6 in step 2"


def test_a_patch_with_which_the_script_fails_is_not_confirmed(script):
    failed = {"status": "failed", "failure": "TypeError: no order", "exit_status": 1}
    world = World(infos={"fix-1-1": failed, "fix-2-1": failed, "fix-3-1": failed})
    found = fix(world, script, origin(script, 5, "hash-order"))
    assert found.confirmed is False
    assert _confirmed(found) == "not confirmed: the script fails with it: TypeError: no order"


def test_what_cannot_be_sorted_keeps_the_order_in_which_it_came(script):
    failed = {"status": "failed", "failure": "TypeError: no order", "exit_status": 1}
    world = World(infos={"fix-1-1": failed})
    found = fix(world, script, origin(script, 5, "hash-order"))
    assert found.confirmed
    assert "x = list(dict.fromkeys(words))" in text_run(world, "fix-2-1")


def test_without_a_patch_nothing_is_run(script):
    world = World()
    found = fix(world, script, origin(script, 4, "race"))
    assert found.patch is None
    assert found.refusals
    assert world.names == []
    assert _confirmed(found) == "no patch could be made"


def test_rounds_end(tmp_path):
    """Each patch brings out another origin, at the next line; the search ends although lines are left."""
    script = tmp_path / "train.py"
    count = MOST_ROUNDS + 3
    script.write_text("".join(f"x{number} = list(set(words))\n" for number in range(count)))
    lines = [origin(script, number + 1, "hash-order", op=f"aten::op{number}") for number in range(count)]
    verdicts, found = {}, {}
    for number, line in enumerate(lines[1:], start=1):
        verdicts |= {f"fix-{number}-2": different(2, line), f"fix-{number}-op-1b": different(2, line)}
        found[f"fix-{number}-op-1b"] = origins(line)
    world = World(verdicts=verdicts, origins=found)
    result = fix(world, script, lines[0])
    assert not result.confirmed
    assert {name.split("-")[1] for name in world.names} == {str(n + 1) for n in range(MOST_ROUNDS)}


def compared(world, script, *names):
    """A series in which runs were made."""
    request = VerifyRequest(Target(str(script), None, ()), script.parent / "records", one_at_a_time=True)
    series = Series(request, run_jobs=world.run_jobs)
    for name in names:
        series.run(Plan(name, "", RecordingSettings(record="")))
    return series


def test_a_patched_run_is_ended_when_it_takes_too_long(script):
    world = World(slow={"fix-1-1", "fix-2-1", "fix-3-1"})
    series = compared(world, script, "run-1", "run-2")
    found = find_fix(Runner(series, world.tools()), Aim(different(2, origin(script, 6, "unseeded-numpy"))))
    assert found.confirmed is False
    assert "did not end with it in 1 s" in sentence_or_none(found.still)
    assert world.limits["fix-1-1"] == 23.0
    assert series.deadline is None


def test_what_differs_rarely_is_tried_more_often(script):
    world = World()
    series = compared(world, script, "run-1", "run-2", "run-3")
    found = find_fix(Runner(series, world.tools()), Aim(different(2, origin(script, 6, "unseeded-numpy"))))
    assert found.pairs == 5


def test_a_patch_for_which_there_is_no_time_is_shown_untried(script, monkeypatch):
    world = World()
    moments = iter((0.0, *[1000.0] * 99))
    monkeypatch.setattr("samebits.verification.series.time.monotonic", lambda: next(moments))
    found = fix(world, script, origin(script, 6, "unseeded-numpy"))
    assert (found.confirmed, _confirmed(found)) == (None, "not confirmed: there was no time to try it")
    assert b"default_rng(0)" in found.diff
    assert world.names == []


def test_a_patch_with_which_the_script_ends_early_is_not_confirmed(script):
    world = World(verdicts={f"fix-{n}-2": replace(IDENTICAL, steps=1) for n in range(1, 9)})
    found = fix(world, script, origin(script, 6, "unseeded-numpy"))
    assert found.confirmed is False
    assert "ends after 1 steps" in sentence_or_none(found.still)


def test_memory_that_nothing_read_is_left_out_with_a_patch_too(script):
    world = World()
    series = compared(world, script)
    aim = Aim(different(2, origin(script, 6, "unseeded-numpy")), excluded=("weight",))
    find_fix(Runner(series, world.tools()), aim)
    assert world.judged_excluded == [("weight",)]
    assert world.settings("fix-1-2").excluded == ("weight",)


def test_patched_runs_do_not_show_the_output_of_the_script(script):
    world = World()
    fix(world, script, origin(script, 6, "unseeded-numpy"))
    assert set(world.outputs.values()) == {"nothing"}


def test_files_that_cannot_be_written_are_an_error(script):
    folder = script.parent / "records"
    folder.mkdir()
    (folder / "fix").write_text("in the way")
    with pytest.raises(SamebitsError, match="give another --keep"):
        fix(World(), script, origin(script, 6, "unseeded-numpy"))


def test_a_patch_that_fails_does_not_deny_what_interventions_have_shown():
    trial = RemedyTrial("pins", identical=True, pairs=2, interventions=("seed-numpy",))
    known = Remedy("seed it", ("seed-numpy",), trial=trial)
    assert Fix(PATCH, "/w", 0, False).remedy(finding(remedy=known)) == known


def test_lines_that_were_run_in_vain_are_not_shown_as_a_remedy():
    """The words stay, with what the interventions have shown; an untried patch stays whole."""
    trial = RemedyTrial("pins", identical=True, pairs=2, interventions=("seed-numpy",))
    changes = (LineChange("/w/a.py", 1, ("a",), ("b",)),)
    known = Remedy("seed it", ("seed-numpy",), "a", "b", changes, trial)
    shown = Fix(PATCH, "/w", 0, False).remedy(finding(remedy=known))
    assert shown == Remedy("seed it", ("seed-numpy",), trial=trial)
    assert Fix(PATCH, "/w").remedy(finding(remedy=known)) == known


def test_the_remedy_shows_its_own_line_of_a_patch_of_several(script):
    before = SourceFile(str(script), b"a = 1\nb = 2\n")
    after = SourceFile(str(script), b"a = 3\nb = 4\n")
    patch = Patch((PatchedFile(before, after),), ("why",), ("a = 1", "a = 3"))
    fix = Fix(patch, str(script.parent), 1, True)
    shown = fix.remedy(finding(remedy=Remedy("text", before="b = 2", after="b = 4")))
    assert (shown.before, shown.after, shown.confirmed) == ("b = 2", "b = 4", True)
    shown = fix.remedy(finding(remedy=Remedy("text", before="b = 2", after="b = 5")))
    assert (shown.before, shown.after) == ("a = 1", "a = 3")


PATCH = Patch((), ("seeds it",), ("a", "b"))


def test_the_project_is_the_script_and_what_it_imports_from_beside_it(tmp_path):
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "src" / "pack"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from .inner import x\n")
    (folder / "inner.py").write_text("x = 1\n")
    (folder / "other.py").write_text("x = 1\n")
    (tmp_path / "src" / "train.py").write_text("import pack\nimport torch\nimport os\n")
    target = Target(str(tmp_path / "src" / "train.py"), None, ())
    found = read_project(target, ())
    names = [file.path.removeprefix(str(tmp_path)) for file in found.files]
    assert names == ["/src/train.py", "/src/pack/__init__.py", "/src/pack/inner.py"]
    assert found.root == str(tmp_path)


def test_the_main_file_of_a_module_and_a_folder(tmp_path, monkeypatch):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__main__.py").write_text("")
    monkeypatch.chdir(tmp_path)
    expected = str(tmp_path / "pack" / "__main__.py")
    assert main_file(Target(None, "pack", ())) == expected
    assert main_file(Target("pack", None, ())) == expected
    assert main_file(Target(None, "elsewhere", ())) == ""
    assert project_root(expected) == str(tmp_path)


def origins(*findings):
    from samebits.comparison.results import OriginSearch

    return OriginSearch(findings)
