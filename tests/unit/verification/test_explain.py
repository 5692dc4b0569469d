"""From the origins to what takes the difference away: which runs are made, and what is made of them."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace

import pytest
from fake_runs import IDENTICAL, World, different, finding, request
from finding_support import changed
from sentence_support import confirmed_by, notes_of, reason_of

from samebits._runtime.frames import Site
from samebits.comparison.results import OriginSearch, Source
from samebits.errors import SamebitsError
from samebits.verification import verify
from samebits.verification.plans import BudgetSpent


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """There is a train.py, which is never run."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


UNDRAWN = finding(cause="wall-clock", origin_kind="outside")
"""Of a cause that no draw shows, so that interventions have to."""


def world(found, *helps, **fields):
    """Runs that differ at one origin, and are identical with some interventions."""
    return World(
        verdicts={"run-2": different(), "op-1b": different()},
        origins={"op-1b": OriginSearch((found,))},
        helps=tuple(map(set, helps)),
        **fields,
    )


def interventions(made):
    """Interventions of each run that had any, in order."""
    return [settings.interventions for _, settings in made.made if settings.interventions]


def explained(tmp_path, made, **fields):
    """The first finding, and all notes."""
    result = verify(request(tmp_path, **fields), tools=made.tools())
    return result.comparison.findings[0], notes_of(result.comparison)


def test_the_intervention_that_the_evidence_suggests_is_confirmed_by_one_pair(tmp_path):
    made = world(UNDRAWN, {"clock"})
    found, _ = explained(tmp_path, made)
    assert interventions(made)[:2] == [("clock",)] * 2
    assert confirmed_by(found) == "with the clock frozen, 1 pair of runs was identical"
    assert (found.remedy.trial.of, found.remedy.trial.pairs) == ("pins", 1)


@pytest.mark.parametrize(("gpus", "tried"), [([], False), ([{"name": "NVIDIA H200"}], True)])
def test_streams_are_tried_where_a_gpu_was_in_use(tmp_path, gpus, tried):
    (tmp_path / "train.py").write_text("x = x.to(device, non_blocking=True)\n")
    info = {"environment": {"torch": {"gpus": gpus}}}
    made = world(finding(origin_kind="kernel"), infos={"run-1": info})
    explained(tmp_path, made)
    assert (("serial-streams",) in interventions(made)) is tried


def test_what_may_agree_by_chance_takes_three_pairs(tmp_path):
    made = world(finding(origin_kind="outside"), {"hash-seed"})
    found, _ = explained(tmp_path, made)
    assert interventions(made) == [("hash-seed",)] * 4
    assert found.cause == "hash-order"
    assert "3 of 3 pairs" in confirmed_by(found)


def test_an_intervention_that_nothing_suggests_is_found_by_halves(tmp_path):
    made = world(finding(origin_kind="outside"), {"clock"})
    found, _ = explained(tmp_path, made)
    assert (found.cause, confirmed_by(found)) == (
        "wall-clock",
        "with the clock frozen, 3 of 3 pairs of runs were identical",
    )
    assert len(set(interventions(made))) <= 12


def test_draws_that_differ_suggest_interventions_where_no_operation_was_found(tmp_path):
    clock = Source("time.perf_counter", None, "wall-clock")
    made = World(
        verdicts={"run-2": different(2, finding(kind="grad", origin_kind="")), "plain-02": different()},
        helps=({"clock"},),
        sources=(clock,),
    )
    found, _ = explained(tmp_path, made)
    assert interventions(made) == [("clock",)] * 4
    assert found.cause == "wall-clock"


def test_what_is_not_seen_again_is_not_explained_by_interventions(tmp_path):
    """Whatever is pinned, the runs are identical: that shows nothing."""
    made = World(
        verdicts={"run-2": different(2, finding(kind="grad", origin_kind=""))},
        helps=(set(),),
        sources=(Source("time.perf_counter", None, "wall-clock"),),
    )
    (tmp_path / "train.py").write_text("import time\n\nx = time.time()\n")
    found, notes = explained(tmp_path, made, fix=True)
    assert interventions(made) == []
    assert not any(name.startswith("fix") for name in made.names)
    assert (found.cause, confirmed_by(found)) == ("unknown", "")
    assert notes[0].startswith("further runs without any change did not differ")
    assert [name for name in made.names if name.startswith("plain")] == [f"plain-0{n}" for n in range(1, 5)]


def test_what_is_seen_again_only_sometimes_takes_more_pairs(tmp_path):
    made = World(
        verdicts={"run-2": different(2, finding(kind="grad", origin_kind="")), "plain-03": different()},
        helps=({"clock"},),
        sources=(Source("time.perf_counter", None, "wall-clock"),),
    )
    found, _ = explained(tmp_path, made)
    assert "5 of 5 pairs" in confirmed_by(found)


def test_two_interventions_that_are_needed_together_are_both_named(tmp_path):
    made = world(finding(origin_kind="outside"), {"clock", "seed-numpy"})
    found, _ = explained(tmp_path, made)
    assert "with the clock frozen" in confirmed_by(found)
    assert "with NumPy's generators seeded" in confirmed_by(found)


def test_where_no_intervention_helps_the_cause_stays_open(tmp_path):
    made = world(finding(origin_kind="outside"))
    found, notes = explained(tmp_path, made)
    assert (found.cause, confirmed_by(found)) == ("unknown", "")
    assert any("still differed with these pinned: hash-seed" in note for note in notes)


def test_a_pair_that_differs_again_takes_the_confirmation_back(tmp_path):
    made = world(finding(origin_kind="outside"), {"hash-seed"})
    made.verdicts |= {f"pinned-{number:02}": different() for number in range(4, 200)}
    found, notes = explained(tmp_path, made)
    assert (found.cause, confirmed_by(found)) == ("unknown", "")
    assert any("still differed with these pinned: hash-seed, layout" in note for note in notes)


def test_after_it_other_interventions_are_tried_and_more_pairs_are_needed(tmp_path):
    made = world(finding(origin_kind="outside"), {"hash-seed"}, {"clock"})
    made.verdicts["pinned-04"] = different()
    every = set(made.helps[1])
    made.helps = ({"hash-seed", "nothing"}, every)
    made.verdicts |= {"pinned-02": IDENTICAL, "pinned-03": IDENTICAL}
    found, _ = explained(tmp_path, made)
    assert "with the clock frozen, " in confirmed_by(found)


def test_what_a_run_has_pinned_already_is_not_tried(tmp_path):
    made = world(finding(origin_kind="outside"), {"layout"})
    found, _ = explained(tmp_path, made, interventions=("hash-seed",))
    assert (
        "with addresses fixed" in confirmed_by(found) or found.cause == "unknown"
    )  # unless it is refused here
    assert all(tried[0] == "hash-seed" for tried in interventions(made))


def test_long_scripts_are_run_with_interventions_to_a_few_steps_behind_the_difference(tmp_path):
    made = world(finding(origin_kind="outside"), {"hash-seed"}, seconds=100.0)
    explained(tmp_path, made)
    assert made.settings("pinned-01").max_steps == 5
    short = world(finding(origin_kind="outside"), {"hash-seed"})
    explained(tmp_path / "short", short)
    assert short.settings("pinned-01").max_steps is None


def test_when_the_time_is_over_what_is_known_is_told(tmp_path, monkeypatch):
    made = world(finding(origin_kind="outside"))
    moments = iter(range(0, 100_000, 20))
    monkeypatch.setattr("samebits.verification.series.time.monotonic", lambda: float(next(moments)))
    found, notes = explained(tmp_path, made, budget=200.0)
    assert found.origin.op == "aten::randn.default"
    assert any("--budget SECONDS gives it more" in note for note in notes), notes
    assert len(made.made) < 16


def test_without_interventions_nothing_is_pinned(tmp_path):
    made = world(finding(cause="unseeded-torch"), {"seed-torch"})
    found, _ = explained(tmp_path, made, intervene=False)
    assert interventions(made) == []
    assert confirmed_by(found) == ""


def interrupt_at(wanted):
    """Ctrl-C during a run."""

    def on_run(name):
        if name == wanted:
            raise KeyboardInterrupt

    return on_run


def test_what_is_known_is_told_when_ctrl_c_ends_the_search(tmp_path):
    made = world(UNDRAWN, {"clock"}, on_run=interrupt_at("pinned-01"))
    result = verify(request(tmp_path, fix=True, replay=1), tools=made.tools())
    assert result.interrupted
    assert notes_of(result.comparison)[0] == "interrupted: this is what is known so far"
    (found,) = result.comparison.findings
    assert (found.cause, found.remedy.controls) == ("wall-clock", ("clock",))
    assert made.names[-1] == "pinned-01"


@pytest.mark.parametrize("name", ["fix-1-1", "replay"])
def test_ctrl_c_after_the_search_loses_nothing(tmp_path, name):
    made = patched(tmp_path, UNDRAWN, {"clock"}, on_run=interrupt_at(name))
    with_text(made, tmp_path, "import time\nimport torch\n\nx = torch.tensor(time.time())\n")
    result = verify(request(tmp_path, fix=name != "replay", replay=1), tools=made.tools())
    assert result.interrupted
    (found,) = result.comparison.findings
    assert ", 1 pair of runs was identical" in confirmed_by(found)
    assert found.remedy.trial is not None


def test_a_bug_after_the_search_loses_nothing(tmp_path):
    def broken(name):
        if name == "replay":
            raise RecursionError("too deep")

    result = verify(request(tmp_path, replay=1), tools=world(UNDRAWN, {"clock"}, on_run=broken).tools())
    assert result.comparison.failure.endswith("RecursionError: too deep\n")
    assert result.comparison.findings[0].remedy.trial.of == "pins"


def test_a_budget_that_is_spent_leaves_what_is_known(tmp_path):
    def slow(name):
        if name == "plain-01":
            raise BudgetSpent

    made = World(verdicts={"run-2": different(2, finding(kind="grad", origin_kind=""))}, on_run=slow)
    _, notes = explained(tmp_path, made)
    assert notes[0].startswith("the time for explaining, 180 s, ran out")
    assert notes[1].startswith("the runs did not differ in 3 more pairs")


@pytest.mark.parametrize(
    ("known", "verdict", "reason"),
    [
        (IDENTICAL, "not_judged", "interrupted after 2 of 3 runs, which gave the same bits"),
        (replace(different(), state="identical"), "different", "the state differs at step 2"),
    ],
)
def test_ctrl_c_between_the_runs_leaves_the_verdict_over_those_that_were_made(
    tmp_path, known, verdict, reason
):
    made = World(verdicts={"run-2": known}, on_run=interrupt_at("run-3"))
    result = verify(request(tmp_path, runs=3), tools=made.tools())
    assert (result.interrupted, result.comparison.verdict) == (True, verdict)
    assert reason_of(result.comparison) == reason


def test_ctrl_c_before_the_verdict_ends_it(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        verify(request(tmp_path), tools=World(on_run=interrupt_at("run-2")).tools())


def test_an_error_in_the_search_does_not_take_the_verdict_away(tmp_path):
    made = world(UNDRAWN, {"clock"})

    def damaged(name):
        if name == "pinned-02":
            raise SamebitsError("it is damaged", slug="record-damaged")

    made.on_run = damaged
    found, notes = explained(tmp_path, made)
    assert found.cause == "wall-clock"
    assert notes[0] == "the search for the cause ended early: it is damaged"


def test_a_bug_in_the_search_does_not_take_the_verdict_away(tmp_path):
    made = world(UNDRAWN, {"clock"})

    def broken(name):
        if name == "pinned-02":
            raise RecursionError("too deep")

    made.on_run = broken
    result = verify(request(tmp_path), tools=made.tools())
    assert result.comparison.verdict == "different"
    assert result.comparison.findings[0].cause == "wall-clock"
    assert result.comparison.failure.endswith("RecursionError: too deep\n")


def test_a_bug_behind_the_search_does_not_take_the_verdict_away(tmp_path, monkeypatch):
    def broken(*_):
        raise IndexError("none")

    monkeypatch.setattr(sys.modules["samebits.verification._remedy"], "with_remedies", broken)
    made = world(finding(cause="unseeded-torch"), {"seed-torch"})
    result = verify(request(tmp_path), tools=made.tools())
    assert result.comparison.verdict == "different"
    assert "IndexError: none" in result.comparison.failure


def floats(*values: float) -> bytes:
    """A captured float32 tensor."""
    header = (
        f'{{"value":{{"dtype":"F32","shape":[{len(values)}],"data_offsets":[0,{4 * len(values)}]}}}}'.encode()
    )
    return struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}f", *values)


def patched(tmp_path, found, *helps, **fields):
    """A world whose script can be patched; the values at its origin were kept."""
    script = tmp_path / "train.py"
    script.write_text("import numpy as np\nimport torch\n\nx = torch.randn(3)\n")
    made = world(changed(found, site=Site(str(script), 4, "<module>")), *helps, **fields)
    made.captured = {"op-1a": floats(1.0, 2.0), "op-1b": floats(1.0, 2.5)}
    return made


def test_what_the_draw_log_shows_is_patched_at_once_and_nothing_is_pinned(tmp_path):
    made = patched(tmp_path, finding(cause="unseeded-torch"))
    found, _ = explained(tmp_path, made)
    assert made.names == ["run-1", "run-2", "op-1a", "op-1b", "fix-1-1", "fix-1-2"]
    assert (found.remedy.confirmed, found.remedy.pairs) == (True, 1)
    assert confirmed_by(found) == "with the change below, 1 pair of runs was identical"


def test_where_that_patch_does_not_help_interventions_are_tried(tmp_path):
    made = patched(tmp_path, finding(cause="unseeded-torch"), {"seed-torch"})
    made.verdicts["fix-1-2"] = different()
    found, _ = explained(tmp_path, made)
    assert confirmed_by(found) == "with torch's generators seeded, 1 pair of runs was identical"
    assert interventions(made) == [("seed-torch",)] * 2


def test_a_generator_behind_the_first_origin_is_looked_for_before_and_seeded_with_it(tmp_path):
    numpy = Source("numpy.random.rand", None, "unseeded-numpy")
    made = patched(tmp_path, finding(cause="unseeded-torch"), sources=(numpy,))
    found, _ = explained(tmp_path, made)
    assert made.names == ["run-1", "run-2", "op-1a", "op-1b", "values-1b", "fix-1-1", "fix-1-2"]
    added = [line for change in found.remedy.changes for line in change.after]
    assert {"np.random.seed(0)", "torch.manual_seed(0)"} <= set(added)


def test_causes_that_may_agree_by_chance_are_pinned_first(tmp_path):
    made = patched(tmp_path, finding(cause="race", origin_kind="order"), {"completion"})
    explained(tmp_path, made)
    assert (
        next(name for name in made.names if name not in ("run-1", "run-2", "op-1a", "op-1b")) == "pinned-01"
    )


def with_text(made, tmp_path, text):
    """The world with another script."""
    (tmp_path / "train.py").write_text(text)
    return made


def test_what_is_drawn_in_one_place_is_patched_at_once(tmp_path):
    """`np.empty` gave other memory in each run: no intervention says more than the line with `np.zeros`."""
    drawn = Source("numpy.empty", Site(str(tmp_path / "train.py"), 4, "<module>"), "uninitialized")
    made = patched(tmp_path, finding(cause="uninitialized", origin_kind="outside", sources=(drawn,)))
    with_text(made, tmp_path, "import numpy as np\nimport torch\n\nx = torch.tensor(np.empty(3))\n")
    found, _ = explained(tmp_path, made)
    assert made.names[4:] == ["fix-1-1", "fix-1-2", "fix-1-3"]
    assert found.remedy.changes[0].after == ("x = torch.tensor(np.zeros(3))",)
    assert (found.remedy.trial.of, found.remedy.trial.pairs) == ("change", 2)


def test_entropy_is_replaced_at_once(tmp_path):
    drawn = Source("os.urandom", Site(str(tmp_path / "train.py"), 4, "<module>"), "os-entropy")
    made = patched(
        tmp_path, finding(cause="os-entropy", origin_kind="outside", sources=(drawn,)), sources=(drawn,)
    )
    with_text(made, tmp_path, "import os\nimport torch\n\nx = torch.tensor(list(os.urandom(4)))\n")
    found, _ = explained(tmp_path, made)
    assert made.names[4:] == ["fix-1-1", "fix-1-2"]
    assert found.remedy.trial.pairs == 1


def test_where_nothing_can_be_changed_on_the_line_only_interventions_are_tried(tmp_path):
    """A duration decides: which number to put there is the user's to say."""
    drawn = Source("time.monotonic", Site(str(tmp_path / "train.py"), 5, "<module>"), "wall-clock")
    made = patched(tmp_path, finding(cause="wall-clock", sources=(drawn,)), {"clock"}, sources=(drawn,))
    text = (
        "import time\nimport torch\n\nstart = time.monotonic()\nx = torch.tensor(time.monotonic() - start)\n"
    )
    found, _ = explained(tmp_path, with_text(made, tmp_path, text))
    assert not any(name.startswith("fix") for name in made.names)
    assert "with the clock frozen" in confirmed_by(found)


def test_a_patch_that_leaves_one_of_the_findings_as_it_is_is_not_tried_at_once(tmp_path):
    script = str(tmp_path / "train.py")
    clock = Source("time.monotonic", Site(script, 5, "<module>"), "wall-clock")
    memory = Source("numpy.empty", Site(script, 6, "<module>"), "uninitialized")
    one = finding(cause="uninitialized", sources=(memory,), site=memory.site)
    two = finding(cause="wall-clock", sources=(clock,), site=clock.site, step=3)
    made = patched(tmp_path, one)
    made.origins["op-1b"] = OriginSearch((one, two))
    text = "import time\nimport torch\nimport numpy as np\nt = time.monotonic()\nx = time.monotonic() - t\n"
    explained(tmp_path, with_text(made, tmp_path, f"{text}y = torch.tensor(np.empty(3))\n"))
    assert made.names[4].startswith(("pinned", "values"))


def test_what_lies_in_the_way_that_the_runs_took_is_not_measured(tmp_path):
    drawn = Source("os.urandom", Site(str(tmp_path / "train.py"), 4, "<module>"), "os-entropy")
    made = patched(tmp_path, finding(cause="os-entropy", origin_kind="control-flow", sources=(drawn,)))
    made.captured = {}
    text = "import os\nimport torch\n\nx = torch.rand(3) if os.urandom(1)[0] > 99 else torch.ones(3)\n"
    explained(tmp_path, with_text(made, tmp_path, text))
    assert made.names[4:] == ["fix-1-1", "fix-1-2"]


def test_what_a_change_has_taken_away_is_still_measured(tmp_path):
    made = patched(tmp_path, finding(cause="unseeded-torch"))
    made.captured = {"values-1a": floats(1.0, 2.0), "values-1b": floats(1.0, 2.5)}
    found, _ = explained(tmp_path, made)
    assert made.names[4:] == ["fix-1-1", "fix-1-2", "values-1a", "values-1b"]
    assert found.origin.difference is not None
    assert found.remedy.trial.of == "change"


def test_interventions_of_which_the_source_shows_a_way_to_act_are_searched_before_all(tmp_path):
    """A thread fills a buffer that is read: no draw tells, but the script starts threads."""
    made = patched(tmp_path, finding(origin_kind="outside"), {"serial-threads"})
    thread = "threading.Thread(target=x.add_, args=(1,)).start()"
    text = f"import threading\nimport torch\n\nx = torch.ones(3)\n{thread}\n"
    found, _ = explained(tmp_path, with_text(made, tmp_path, text))
    assert found.cause == "race"
    assert max(map(len, interventions(made))) < 8
    assert len(set(interventions(made))) < 8


def test_two_sources_of_one_place_are_not_measured_as_two(tmp_path):
    script = str(tmp_path / "train.py")
    drawn = [Source(op, Site(script, 4, "<module>"), cause) for op, cause in SOURCES]
    made = patched(tmp_path, finding(cause="unknown", sources=tuple(drawn)), sources=tuple(drawn))
    made.captured = {}
    text = "import random\nimport numpy as np\nimport torch\nx = torch.rand(2) + random.random()"
    explained(tmp_path, with_text(made, tmp_path, f"{text} + np.random.rand()\n"))
    assert made.names[4:] == ["fix-1-1", "fix-1-2"]


SOURCES = (("random.random", "unseeded-python"), ("numpy.random.rand", "unseeded-numpy"))
SET = "import torch\n\nnames = set('a b c d'.split())\nx = torch.tensor([len(name) for name in names])\n"


def test_an_intervention_that_helps_once_and_a_patch_for_what_it_shows_are_enough(tmp_path):
    made = with_text(patched(tmp_path, finding(origin_kind="outside"), {"hash-seed"}), tmp_path, SET)
    found, _ = explained(tmp_path, made)
    assert interventions(made) == [("hash-seed",)] * 2
    assert made.names[-3:] == ["fix-1-1", "fix-1-2", "fix-1-3"]
    assert (found.cause, found.remedy.trial.of, found.remedy.trial.pairs) == ("hash-order", "change", 2)
    assert confirmed_by(found) == "with the hash seed fixed, 1 pair of runs was identical"


def test_where_that_patch_does_not_help_more_pairs_are_made_with_the_intervention(tmp_path):
    made = with_text(patched(tmp_path, finding(origin_kind="outside"), {"hash-seed"}), tmp_path, SET)
    made.verdicts |= {f"fix-{trial}-{run}": different() for trial in (1, 2) for run in (2, 3)}
    found, _ = explained(tmp_path, made)
    assert len(interventions(made)) > 2
    assert (found.cause, found.remedy.trial.of) == ("hash-order", "pins")
    tried = [name for name in made.names if name.startswith("fix")]
    assert len(tried) == len(set(tried))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RecursionError])
def test_what_interventions_showed_is_told_when_the_trial_of_a_patch_ends_the_search(tmp_path, error):
    made = with_text(patched(tmp_path, finding(origin_kind="outside"), {"hash-seed"}), tmp_path, SET)

    def broken(name):
        if name == "fix-1-1":
            raise error

    made.on_run = broken
    notes = notes_of(verify(request(tmp_path), tools=made.tools()).comparison)
    assert any(note.startswith("with the hash seed fixed, 1 pair of runs was identical") for note in notes)


def test_a_patch_is_not_tried_again_under_the_same_name(tmp_path):
    """What was tried at once is tried again after the intervention, with a patch of another origin."""
    made = patched(tmp_path, finding(cause="unseeded-torch"), {"seed-torch"})
    made.verdicts["fix-1-2"] = different()
    explained(tmp_path, made)
    assert len(made.names) == len(set(made.names))


def told_of(tmp_path, made, **fields):
    """The result, and what was told before it."""
    told = []
    result = verify(request(tmp_path, **fields), tools=made.tools(), tell=told.append)
    return result, told


def test_the_verdict_is_told_at_once_and_the_origin_before_anything_is_proven(tmp_path):
    made = world(finding(cause="wall-clock", origin_kind="outside"), {"clock"})
    names = []
    result = verify(request(tmp_path), tools=made.tools(), tell=lambda _: names.append(made.names[-1]))
    assert names == ["run-2", "op-1b"]
    assert confirmed_by(result.comparison.findings[0])
    _, told = told_of(
        tmp_path / "again", world(finding(cause="wall-clock", origin_kind="outside"), {"clock"})
    )
    assert [each.localised for each in told] == [False, True]
    assert [bool(confirmed_by(finding)) for each in told for finding in each.comparison.findings] == [False]


def test_quick_ends_with_the_first_answer(tmp_path):
    made = patched(tmp_path, finding(cause="unseeded-torch"), {"seed-torch"})
    result, told = told_of(tmp_path, made, quick=True)
    assert made.names == ["run-1", "run-2", "op-1a", "op-1b"]
    assert len(told) == 2
    assert result.quick
    assert result.comparison.findings[0].remedy.trial is None


def test_nothing_is_told_of_identical_runs(tmp_path):
    assert told_of(tmp_path, World())[1] == []
