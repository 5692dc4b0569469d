"""The report for people."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from finding_support import changed
from report_builders import different, finding, identical, run
from sentence_support import text_evidence, text_note, text_reason

from samebits._runtime.frames import Site
from samebits._text.option_names import Interface
from samebits.comparison.replayed import replayed
from samebits.comparison.results import Comparison, Confirmation, LineChange, Remedy, RemedyTrial
from samebits.diagnosis.patches.edits import Patch, PatchedFile, SourceFile
from samebits.recording.distance import Difference
from samebits.recording.replay_results import ReplaySummary, Skipped, SkipReason, Unrepeated
from samebits.records.notes import Note, NoteCode
from samebits.report import text
from samebits.report.sentences import _SKIPPED, skipped_lines
from samebits.report.style import Style
from samebits.verification.results import Fix, Verification

PLAIN = Style(colour=False, width=100)


@pytest.fixture
def script(tmp_path):
    """A file whose lines are quoted."""
    path = tmp_path / "train.py"
    path.write_text("import torch\ntorch.seed()\n    x = x + torch.randn(6, 4)  # the culprit\n")
    return str(path)


def test_identical_is_one_line_and_the_facts():
    """The verdict comes first, with what was compared."""
    lines = text.render(identical(), PLAIN, "/code").splitlines()

    assert lines[0] == "identical: 2 runs, 120 steps, 4 812 values compared bit for bit"
    assert lines[2:] == [
        "  final digest  " + "ab" * 16,
        "  runs          2 in 14 s",
        "  records       .samebits/train-verify-1",
    ]


def test_a_difference_reads_from_the_verdict_to_what_to_type_next(script, tmp_path):
    """The whole report of an operation."""
    shown = text.render(different(finding(script)), PLAIN, str(tmp_path))

    expected = """\
different: the state differs at step 2: parameter weight (f32[2, 4])

first difference: step 2, aten::randn.default in module net.drop
  train.py:3 in training_step
    > x = x + torch.randn(6, 4)  # the culprit

  what came out f32[6, 4]: 24 of 24 elements differ, by up to 2.513 (1 074 266 112 ULP)
                first at [0, 0]: 0.33669036626815796 in run 1, 1.9269152879714966 in run 2
  cause         unseeded-torch
  why           step 2: train.py:3 drew from torch's global generator, which nothing seeds
  remedy        call torch.manual_seed(...) instead

  runs          6 in 21 s: 2 to compare, 2 to find the operation, 2 to continue with equal values
"""
    assert shown.startswith(expected)
    assert shown.splitlines()[-1].endswith("train-verify-1/op-1b.sbr --events op --step 2")


def test_backward_shows_the_forward_line(script, tmp_path):
    """A backward op is shown with the forward line that made it."""
    backward = finding(None or script, op="aten::mm.default", forward_site=Site(script, 2, "forward"))

    shown = text.render(different(backward), PLAIN, str(tmp_path))

    assert "  backward of train.py:2 in forward\n    > torch.seed()" in shown


def test_a_missing_source_is_fine():
    """The place is shown without its line."""
    shown = text.render(different(finding("/nowhere/train.py")), PLAIN, "/code")

    assert "/nowhere/train.py:3 in training_step" in shown
    assert "    > " not in shown


def test_further_origins_are_a_line_each(script, tmp_path):
    """The first is told in full, the others named."""
    others = [finding(script, op=f"aten::op{n}.default", cause="unknown") for n in range(6)]

    shown = text.render(different(finding(script), *others), PLAIN, str(tmp_path))

    assert "also different\n  step 2, aten::op0.default in module net.drop, train.py:3" in shown
    assert "... and 2 more" in shown


def test_what_the_same_interventions_took_away_is_not_called_different_on_its_own(script, tmp_path):
    """A cause that interventions have shown for the first origin is that of the others with it."""
    first = finding(script, cause="os-entropy", confirmed_by=Confirmation(("entropy",), 2, 2))
    others = [finding(script, op=f"aten::{cause}", cause=cause) for cause in ("os-entropy", "race")]

    shown = text.render(different(first, *others), PLAIN, str(tmp_path))

    assert "also different for the same reason\n  step 2, aten::os-entropy" in shown
    assert "also different for another reason\n  step 2, aten::race" in shown


def test_what_comes_after_the_runs_parted_is_counted_unless_its_cause_is_known():
    parted = finding(cause="unknown", origin_kind="control-flow", remedy=None)
    after = [changed(parted, op=f"aten::op{n}", origin_kind="outside") for n in range(7)]
    result = different(parted, *after, finding(op="aten::rand"))
    shown = text.render(result, PLAIN, "/code")
    assert "7 further differences come after the runs diverged, and may follow from that" in shown
    assert "aten::op0" not in shown
    assert "also different\n  step 2, aten::rand" in shown
    assert "also different\n  step 2, aten::op0" in text.render(result, PLAIN, "/code", verbose=True)


def test_a_state_difference_names_the_tensors(script, tmp_path):
    """At step level what came out is the parameters that differ."""
    names = ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "conv.weight")
    state = finding(
        script,
        kind="step",
        op="SGD.step",
        difference=None,
        names=names,
        outputs=("f32[3]",) * 5,
        cause="unknown",
    )

    shown = text.render(different(state), PLAIN, str(tmp_path))

    assert "first difference: step 2, the state after the step (SGD.step)" in shown
    assert "fc1.weight f32[3], fc1.bias f32[3], fc2.weight f32[3], fc2.bias f32[3] and 1 more" in shown
    assert "cause         not known yet" in shown
    compared = text.render(replace(different(state), seconds=0.0), PLAIN, str(tmp_path))
    assert "cause         not known\n" in compared  # nothing more will be run


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference(1, 1, None, 3.0), "its one element differs, by up to 3\n"),
        (Difference(2, 10, None, math.nan), "2 of 10 elements differ, some of them NaN in one run"),
        (Difference(2, 10, None, math.inf), "by up to inf"),
        (Difference(2, 10, 1, 1e-9), "by up to 1e-09 (1 ULP)"),
        (Difference(2, 10, 0, 0.0), "2 of 10 elements differ, only in the sign of zero\n"),
        (Difference(2, 10, None, None), "2 of 10 elements differ\n"),
    ],
)
def test_by_how_much(difference, words):
    """Numbers of elements, absolute and in units in the last place."""
    shown = text.render(different(changed(finding(), difference=difference)), PLAIN, "/code")

    assert words in shown


def test_not_judged_gives_the_reason():
    """Nothing else is claimed."""
    comparison = Comparison("not_judged", text_reason("train.py never imported torch: nothing to compare"), 0)
    shown = text.render(Verification(comparison, ("train.py",), (run(),), 1.0), PLAIN, "/code")

    assert shown.splitlines()[0] == "not judged: train.py never imported torch: nothing to compare"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit(script, tmp_path, width):
    """Prose is wrapped to the terminal."""
    shown = text.render(different(finding(script), finding(script)), Style(width=width), str(tmp_path))

    assert max(map(len, shown.splitlines())) <= width


def test_colour_changes_nothing_but_colour(script, tmp_path):
    """Without its escape sequences the coloured report is the plain one."""
    import re

    result = different(finding(script))
    coloured = text.render(result, Style(colour=True), str(tmp_path))

    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text.render(result, PLAIN, str(tmp_path))


def test_a_hostile_record_cannot_move_the_cursor():
    """Escape sequences in names are shown, not obeyed."""
    hostile = finding("/tmp/\x1b[2J.py", op="aten::\x1b[31mmm", evidence=(text_evidence("\x07bell"),))  # noqa: S108

    shown = text.render(different(hostile, notes=(text_note("\x1b]0;title\x07"),)), PLAIN, "/code")

    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_operations_that_do_not_repeat_are_shown_under_any_verdict():
    """In the first line, with their line and evidence, and counts of what was left out."""
    found = Unrepeated(
        "aten::index_add_.default", "net", Site("/code/train.py", 31, "main"), None, 1, 4, 12, 3,
        ("float32[3]",), ("float32[3]",), "cuda", difference=Difference(2, 3, 1, 0.5),
    )  # fmt: skip
    skipped = (
        Skipped(SkipReason.VIEW, "aten::t.default", 12),
        Skipped(SkipReason.SIDE_EFFECT, "c10d::allreduce_.default", 3),
    )
    summary = ReplaySummary(3, 412, 38, 3, (found,), skipped)
    result = identical()
    result = replace(result, comparison=replace(result.comparison, replayed=replayed(summary)))
    shown = " ".join(text.render(result, PLAIN, "/code").split())

    assert "but 1 operation does not repeat" in shown
    assert "does not repeat: step 1, aten::index_add_.default in module net train.py:31 in main" in shown
    assert "f32[3]: the same bits each time" in shown
    assert "2 of 3 elements differ, by up to 0.5 (1 ULP)" in shown
    assert "gave different bits in 3 of 12 repetitions" in shown
    assert "412 calls of 38 operations executed again 3 times each in 3 steps, 1 operation did not" in shown
    assert "not executed again: 12 view" in shown
    assert "not executed again, side effect outside tensors: c10d::allreduce_.default 3" in shown


def test_all_operations_repeated():
    """One line."""
    result = identical()
    summary = ReplaySummary(1, 1, 1, 1)
    result = replace(result, comparison=replace(result.comparison, replayed=replayed(summary)))
    shown = text.render(result, PLAIN, "/code")

    assert "1 call of 1 operation executed again in 1 step, all gave the same bits" in shown
    assert "repeat" not in shown


def test_the_remedy_shows_the_line_before_and_after(script, tmp_path):
    """Two lines, and how often the script ran with them."""
    change = LineChange(str(tmp_path / "a.py"), 4, ("    torch.seed()",), ("    torch.manual_seed(0)",))
    remedy = Remedy("seed it", changes=(change,), trial=RemedyTrial("change", identical=True, pairs=3))
    shown = text.render(different(finding(script, remedy=remedy)), PLAIN, str(tmp_path))

    assert (
        """\
  remedy        seed it
  before        torch.seed()
  after         torch.manual_seed(0)
  tried         with this change 3 pairs of runs were identical
"""
        in shown
    )


def test_a_change_of_several_lines_is_shown_whole(script, tmp_path):
    """Each line can be copied as it stands, however long: imports and seeds too."""
    file, long = str(tmp_path / "a.py"), "    x = random.randbytes(4)  # " + "long " * 30
    changes = (
        LineChange(file, 1, (), ("import random", "", "random.seed(0)")),
        LineChange(file, 4, ("    x = os.urandom(4)",), (long,)),
    )
    remedy = Remedy("draw it", changes=changes, trial=RemedyTrial("change", identical=True, pairs=1, steps=9))
    shown = text.render(different(finding(script, remedy=remedy)), PLAIN, str(tmp_path))

    assert (
        f"""\
  change        a.py:1
                + import random
                + random.seed(0)
  change        a.py:4
                -     x = os.urandom(4)
                + {long}
  tried         with this change 1 pair of runs was identical in the first 9 steps
"""
        in shown
    )


def test_paths_in_the_words_of_a_remedy_are_relative(script, tmp_path):
    remedy = Remedy(f"draw it (random.sample at {tmp_path}/train.py:3)")
    shown = text.render(different(finding(script, remedy=remedy)), PLAIN, str(tmp_path))
    assert "draw it (random.sample at train.py:3)" in shown


def test_a_remedy_of_which_only_interventions_were_run_says_so(script, tmp_path):
    """Never `tried`: what was pinned is another thing than the line that is shown."""
    trial = RemedyTrial("pins", identical=True, pairs=2, interventions=("seed-torch", "seed-numpy"))
    shown = text.render(
        different(finding(script, remedy=Remedy("seed both", trial=trial))), PLAIN, str(tmp_path)
    )

    said = " ".join(shown.split())
    assert (
        "not run with torch's generators seeded and with NumPy's generators seeded, 2 pairs of runs were "
        "identical; this change itself was not run"
    ) in said
    assert "tried" not in shown


def test_a_fix_is_shown_as_a_diff(script, tmp_path):
    """With what came of it, what was left alone, and where it was written."""
    before = SourceFile(str(tmp_path / "a.py"), b"x = 1\n")
    patch = Patch((PatchedFile(before, SourceFile(before.path, b"x = 2\n")),), ("why",))
    fix = Fix(patch, str(tmp_path), 3, confirmed=True, diff_file=str(tmp_path / "r" / "fix.diff"))
    shown = text.render(replace(different(finding(script)), fix=fix), PLAIN, str(tmp_path))

    assert (
        "fix: confirmed by 3 pairs\n  --- a/a.py\n  +++ b/a.py\n  @@ -1 +1 @@\n  -x = 1\n  +x = 2\n" in shown
    )
    assert "  written to r/fix.diff" in shown
    still = replace(fix, confirmed=False, still=text_reason("still differs at a.py:1"))
    shown = text.render(replace(different(finding(script)), fix=still), PLAIN, str(tmp_path))
    assert "fix: not confirmed: still differs at a.py:1" in shown
    none = Fix(None, str(tmp_path), refusals=tuple(f"a.py:{n}: why" for n in range(6)))
    shown = text.render(replace(different(finding(script)), fix=none), PLAIN, str(tmp_path))
    assert "fix: no patch could be made\n  not changed: a.py:0: why" in shown
    assert "and 2 more" in shown


def test_an_applied_fix_leaves_the_source_lines_of_the_runs(script, tmp_path):
    """The report quotes the lines that differed, though the files have others by now."""
    source = Path(script)
    before = source.read_bytes()
    source.write_bytes(b"import torch\ntorch.manual_seed(0)\n    x = x + y  # mended\n")
    after = SourceFile(script, source.read_bytes())
    fix = Fix(Patch((PatchedFile(SourceFile(script, before), after),), ("why",)), str(tmp_path), applied=True)
    shown = text.render(replace(different(finding(script)), fix=fix), PLAIN, str(tmp_path)).split("fix:")[0]
    assert "# the culprit" in shown
    assert "# mended" not in shown


NOT_PLACED = "run 1's value could not be put in place"


def test_values_that_could_not_be_put_in_place_are_one_note(script, tmp_path):
    """One for each operation would push away what matters more."""
    notes = [
        Note.of(NoteCode.NOT_PLACED, "1", "1", f"aten::op{n}", f"train.py:{n}", "missing") for n in range(9)
    ]
    comparison = replace(
        different(finding(script)).comparison, notes=(*notes, text_note("the machine was busy"))
    )
    result = replace(different(finding(script)), comparison=comparison)

    shown = text.render(result, PLAIN, str(tmp_path))
    assert "note: the machine was busy" in shown
    assert f"note: {NOT_PLACED} at 9 operations" in shown.replace("\n      ", " ")
    assert shown.count(NOT_PLACED) == 1
    assert text.render(result, PLAIN, str(tmp_path), verbose=True).count("aten::op") >= 9


def _reported(**fields):
    reason = text_reason("the training is identical at every step; 1 reported value differs")
    read = finding(
        "train.py",
        kind="read",
        op="item",
        origin_kind="",
        cause="unknown",
        evidence=(text_evidence("it differs in 2 steps"),),
    )
    listed = {"state": "identical", "reason": reason, "reported": (read,), **fields}
    return different(*listed.pop("findings", (read,)), **listed)


def test_values_that_only_differ_where_they_are_reported_are_listed_once(tmp_path):
    shown = text.render(_reported(), PLAIN, str(tmp_path))
    assert shown.startswith("different: the training is identical at every step; 1 reported value differs\n")
    assert "  train.py:3 in training_step (item; it differs in 2 steps)\n" in shown
    assert "With --state-only the exit status is 0" in " ".join(shown.split())
    assert "first difference" not in shown


def test_values_that_are_left_out_do_not_make_the_headline(tmp_path):
    """With `--state-only` the verdict, the status and the page say the same."""
    shown = text.render(_reported(), Style(state_only=True), str(tmp_path))
    headline = (
        "identical: the training is identical at every step; 1 reported value differs; --state-only leaves "
        "that out"
    )
    assert " ".join(shown.split()).startswith(headline)
    assert "  train.py:3 in training_step (item; it differs in 2 steps)\n" in shown
    assert "With --state-only" not in shown

    differs = text.render(different(finding("train.py")), Style(state_only=True), str(tmp_path))
    assert differs.startswith("different: ")


@pytest.mark.parametrize(
    ("interface", "hint"),
    [
        (Interface.ASSERT_REPEATABLE, "these values. With state_only=True the assertion passes."),
        (Interface.ASSERTION, "these values."),
    ],
)
def test_a_report_for_a_test_names_only_what_its_call_has(interface, hint, tmp_path):
    """No option of the command line; `state_only` only where the call has that argument."""
    many = {"reported": (finding("train.py", kind="read", op="item", origin_kind="", cause="unknown"),) * 9}
    shown = text.render(_reported(**many), Style(interface=interface), str(tmp_path))

    assert " ".join(shown.split()).partition(" runs ")[0].endswith(hint), shown
    assert "... and 3 more\n" in shown
    assert not any(name in shown for name in ("--json", "--verbose", "--state-only"))


def test_a_time_that_is_only_reported_is_called_a_log_value(tmp_path):
    clock = finding("train.py", cause="wall-clock", op="aten::lift_fresh.default")
    shown = " ".join(text.render(_reported(findings=(clock,)), PLAIN, str(tmp_path)).split())
    assert "The time taken at train.py:3 in training_step is only reported: a log value." in shown
    assert "first difference" in shown


def test_findings_of_one_cause_are_not_called_different_on_their_own(tmp_path):
    same, other = finding(op="aten::rand.default"), finding(op="aten::x.default", cause="wall-clock")
    shown = text.render(different(finding(), same, other), PLAIN, str(tmp_path))
    assert "also different by the same cause\n  step 2, aten::rand.default" in shown
    assert "also different for another reason\n  step 2, aten::x.default" in shown


def test_a_long_note_is_cut(tmp_path):
    note = "made with " + ", ".join(f"thing number {number} pinned" for number in range(22))
    shown = text.render(different(finding(), notes=(text_note(note),)), PLAIN, str(tmp_path))
    assert shown.count("thing number") < 10
    assert "... (--verbose)" in shown
    whole = text.render(different(finding(), notes=(text_note(note),)), PLAIN, str(tmp_path), verbose=True)
    assert " ".join(whole.split()).count("thing number") == 22


def test_each_reason_to_skip_an_operation_is_said():
    """Those of another version in the words of the record."""
    assert set(_SKIPPED) == set(SkipReason)
    assert len(set(_SKIPPED.values())) == len(SkipReason)
    skipped = (
        Skipped(SkipReason.FAILED, "mine::f.default", 2, "RuntimeError"),
        Skipped("a reason of another version", "mine::g.default", 1),
    )
    assert skipped_lines(ReplaySummary(1, 1, 1, 1, (), skipped)) == [
        "not executed again, a reason of another version: mine::g.default 1",
        "not executed again, error when executed again (RuntimeError): mine::f.default 2",
    ]
