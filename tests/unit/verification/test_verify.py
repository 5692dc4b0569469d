"""The order of a verification: what is run, how, and what is made of it."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from fake_runs import IDENTICAL, FakeRecord, World, different, finding, request
from sentence_support import notes_of, reason_of, text_note, text_reason

from samebits._runtime.address_layout import can_fix_layout
from samebits.comparison.environments import FactDifference
from samebits.comparison.results import Comparison, OriginSearch
from samebits.errors import SamebitsError
from samebits.records.notes import Note, NoteCode
from samebits.verification import verify


def floats(*values: float) -> bytes:
    """A captured float32 tensor."""
    header = (
        f'{{"value":{{"dtype":"F32","shape":[{len(values)}],"data_offsets":[0,{4 * len(values)}]}}}}'.encode()
    )
    return struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}f", *values)


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """There is a train.py, which is never run."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


def run(world: World, tmp_path, **fields):
    """Verify in that world, without interventions."""
    return verify(request(tmp_path, **{"intervene": False, **fields}), tools=world.tools())


def test_identical_takes_two_runs(tmp_path):
    """Two runs, the second stopped where it differs from the first."""
    world = World()

    result = run(world, tmp_path)

    assert (result.comparison.verdict, world.names) == ("identical", ["run-1", "run-2"])
    assert world.settings("run-1").reference == ""
    assert world.settings("run-2").reference == str(tmp_path / "run-1.sbr")


def test_full_does_not_stop_the_second_run(tmp_path):
    """--full: no reference."""
    world = World()

    run(world, tmp_path, full=True)

    assert world.settings("run-2").reference == ""


@pytest.mark.skipif(not can_fix_layout(), reason="addresses cannot be fixed here")
def test_runs_with_fixed_addresses_are_told_the_same(tmp_path):
    """A longer text for one of them would move what is allocated after it."""
    world = World()

    run(world, tmp_path, interventions=("layout",))

    first, second = (world.settings(name) for name in ("run-1", "run-2"))
    assert (first.reference, second.reference) == ("", "")
    assert (first.phase, second.phase) == ("run 1 of 2", "run 2 of 2")  # no time, which may be longer in one


def test_a_run_that_was_stopped_at_no_difference_is_made_again(tmp_path):
    """Its beginning alone proves nothing."""
    world = World(infos={"run-2": {"status": "stopped"}}, verdicts={"run-2-whole": different()})

    result = run(world, tmp_path, localise=False)

    assert (result.comparison.verdict, world.names) == ("different", ["run-1", "run-2", "run-2-whole"])
    assert world.settings("run-2-whole").reference == ""


def test_more_runs_stop_at_the_first_difference(tmp_path):
    """Each further run is compared with the first; after a difference there is no further one."""
    world = World(verdicts={"run-3": different()})

    result = run(world, tmp_path, runs=5, localise=False)

    assert (result.comparison.verdict, world.names) == ("different", ["run-1", "run-2", "run-3"])


def test_steps_limit_every_run(tmp_path):
    """--steps reaches all runs, also those that localise."""
    world = World(verdicts={"run-2": different(1)})

    run(world, tmp_path, steps=2)

    assert {2} == {settings.max_steps for _, settings in world.made}


def test_a_difference_is_localised_and_measured(tmp_path):
    """Step-level pair, op-level pair, capture pair: the finding has its difference."""
    world = World(
        verdicts={"run-2": different(4), "op-1b": different(4)},
        origins={"op-1b": OriginSearch((finding(),))},
        captured={"values-1a": floats(1.0, 2.0), "values-1b": floats(1.0, 2.5)},
    )

    result = run(world, tmp_path)

    assert world.names == ["run-1", "run-2", "op-1a", "op-1b", "values-1a", "values-1b"]
    assert (world.settings("op-1a").first_op_step, world.settings("op-1a").max_steps) == (2, 5)
    assert world.settings("op-1b").reference == str(tmp_path / "op-1a.sbr")
    kept, given = world.settings("values-1a"), world.settings("values-1b")
    (rule,) = kept.substitution.rules
    assert (rule.kind, rule.op, rule.line, rule.part) == ("op", "aten::randn.default", 3, "state")
    assert (kept.substitution.source, given.substitution.source) == ("", kept.record)
    assert (kept.first_op_step, kept.max_steps, given.reference) == (2, 5, kept.record)
    difference = result.comparison.findings[0].origin.difference
    assert (difference.elements, difference.total, difference.max_abs) == (1, 2, 0.5)


def test_what_the_op_pair_kept_is_put_in_place_in_one_more_run(tmp_path):
    """Step-level pair, op-level pair: its kept tensors are what differs, and what a fifth run is given."""
    world = World(
        verdicts={"run-2": different(), "op-1b": different()},
        origins={"op-1b": OriginSearch((finding(origin_kind="kernel"),))},
        captured={"op-1a": floats(1.0, 2.0), "op-1b": floats(1.0, 2.5)},
    )

    comparison = run(world, tmp_path).comparison

    assert world.names == ["run-1", "run-2", "op-1a", "op-1b", "values-1b"]
    assert (world.settings("op-1a").keep_from_step, world.settings("op-1a").keep_bytes) == (0, 1 << 26)
    given = world.settings("values-1b")
    assert given.substitution.source == given.reference == world.settings("op-1a").record
    assert comparison.findings[0].origin.difference.elements == 1


def test_small_steps_are_localised_from_the_start(tmp_path):
    """Ops are recorded from step 0 when the difference is near it."""
    world = World(
        verdicts={"run-2": different(3), "op-1b": different(3)}, origins={"op-1b": OriginSearch((finding(),))}
    )

    run(world, tmp_path)

    assert world.settings("op-1a").first_op_step == 0


def test_a_race_that_hides_is_tried_again(tmp_path):
    """An identical op-level pair is repeated with more steps, the last time from step 0."""
    world = World(
        verdicts={"run-2": different(9), "op-3b": different(9)}, origins={"op-3b": OriginSearch((finding(),))}
    )

    result = run(world, tmp_path)

    asked = [world.settings(f"op-{n}a") for n in (1, 2, 3)]
    assert [settings.first_op_step for settings in asked] == [7, 7, 0]
    assert [settings.max_steps for settings in asked] == [10, 13, 13]
    assert result.comparison.findings == (finding(),)


def test_runs_of_other_lengths_are_run_to_their_ends(tmp_path):
    """No step differed: where one run went on and the other did not lies behind all of them."""
    longer = Comparison("different", text_reason("the runs made different numbers of steps, 50 and 51"), 50)
    world = World(
        verdicts={"run-2": longer, "op-2b": longer},
        origins={"op-2b": OriginSearch((finding(origin_kind=""),))},
    )

    run(world, tmp_path)

    asked = [world.settings(f"op-{n}a") for n in (1, 2)]
    assert [settings.max_steps for settings in asked] == [None, None]
    assert [settings.first_op_step for settings in asked] == [48, 48]


def test_other_ways_have_no_values_to_fetch(tmp_path):
    """Where the runs did different things there are no two values to compare."""
    parted = finding(origin_kind="control-flow", events=(4, 5))
    world = World(
        verdicts={"run-2": different(1), "op-1b": different(1)}, origins={"op-1b": OriginSearch((parted,))}
    )

    result = run(world, tmp_path)

    assert world.names[-1] == "op-1b"
    assert notes_of(result.comparison) == ()


def test_a_race_that_never_shows_is_said_honestly(tmp_path):
    """Three identical op-level pairs: the step-level finding stays, with a note."""
    step_finding = finding(kind="step", op="SGD.step", origin_kind="")
    world = World(verdicts={"run-2": different(9, step_finding)})

    result = run(world, tmp_path)

    assert world.names[-1] == "op-3b"
    assert result.comparison.findings == (step_finding,)
    assert "did not differ in 3 more pairs" in notes_of(result.comparison)[-1]


def test_a_value_that_came_before_is_followed_from_the_start(tmp_path):
    """Origins that cannot be reached from first_op_step: once more from step 0."""
    world = World(
        verdicts={"run-2": different(9), "op-1b": different(9), "op-2b": different(9)},
        origins={"op-1b": OriginSearch((), complete=False), "op-2b": OriginSearch((finding(),))},
    )

    result = run(world, tmp_path)

    assert world.settings("op-2a").first_op_step == 0
    assert result.comparison.findings == (finding(),)


def test_a_script_that_fails_with_operations_recorded_is_said_so(tmp_path):
    """Not called a race."""
    failed = {"status": "failed", "failure": "RuntimeError: no"}
    world = World(verdicts={"run-2": different(1)}, infos={"op-1a": failed, "op-1b": failed})

    result = run(world, tmp_path)

    assert world.names[-1] == "op-1b"
    assert "failed when every operation was recorded (RuntimeError: no)" in notes_of(result.comparison)[-1]


def test_what_was_found_is_kept_when_the_script_fails_with_operations_recorded_from_the_start(tmp_path):
    """The value entered before operations were recorded, and the pair that should show where fails."""
    late = OriginSearch((finding(origin_kind="outside"),))
    world = World(
        verdicts={"run-2": different(9), "op-1b": different(9)},
        origins={"op-1b": late},
        infos={"op-2a": {"status": "failed", "failure": "RuntimeError: no"}},
    )

    result = run(world, tmp_path)

    assert result.comparison.findings == late.findings
    notes = " ".join(notes_of(result.comparison))
    assert "failed when every operation was recorded from its start (RuntimeError: no)" in notes


def test_unread_memory_is_excluded(tmp_path):
    """State that differs only where nothing wrote and nothing read: judged again without it."""
    world = World(
        verdicts={"run-2": different(1), "op-1b": different(1), "run-2-excused": IDENTICAL},
        origins={
            "op-1b": OriginSearch((), unread=("buffer.scratch",), notes=(text_note("scratch is never read"),))
        },
    )

    result = run(world, tmp_path)

    assert result.comparison.verdict == "identical"
    assert "scratch is never read" in notes_of(result.comparison)
    assert world.settings("run-2-excused").excluded == ("buffer.scratch",)
    assert world.judged_excluded[-1] == ("buffer.scratch",)


def test_values_that_cannot_be_fetched_leave_a_note(tmp_path):
    """Three pairs in which the operation gave the same bits."""
    world = World(
        verdicts={"run-2": different(1), "op-1b": different(1)},
        origins={"op-1b": OriginSearch((finding(),))},
        captured={f"values-{n}{x}": floats(1.0) for n in (1, 2, 3) for x in "ab"},
    )

    result = run(world, tmp_path)

    assert world.names[-1] == "values-3b"
    assert result.comparison.findings[0].origin.difference is None
    assert "could not be fetched" in notes_of(result.comparison)[-1]


@pytest.mark.parametrize("placed", [True, False])
def test_what_entered_late_is_void_once_the_runs_agree(tmp_path, placed):
    """With every value put in place; where one could not be, what entered late stays, and that is said."""
    late, other = Note.of(NoteCode.LATE_VALUE, None), text_note("a value that differs entered at a.py:1")
    unplaced = Note.of(NoteCode.NOT_PLACED, "1", "2", "aten::mm", "train.py:3", "missing")
    compiled = Note.of(NoteCode.COMPILED, "1")
    world = World(
        verdicts={"run-2": different(1), "op-1b": different(1)},
        origins={"op-1b": OriginSearch((finding(),), notes=(late, other))},
        captured={"values-1a": floats(1.0, 2.0), "values-1b": floats(1.0, 2.5)},
        infos={"values-1b": {"notes": (compiled,) if placed else (compiled, unplaced)}},
    )

    notes = run(world, tmp_path).comparison.notes

    assert notes == ((other,) if placed else (late, other, unplaced))


def test_level_op_needs_no_further_pair_to_localise(tmp_path):
    """The pair that was compared has the operations."""
    world = World(
        verdicts={"run-2": different(1)},
        origins={"run-2": OriginSearch((finding(),))},
        captured={"values-1a": floats(1.0), "values-1b": floats(2.0)},
    )

    run(world, tmp_path, level="op")

    assert world.names == ["run-1", "run-2", "values-1a", "values-1b"]


def test_without_torch_there_is_one_run(tmp_path):
    """Nothing to compare is known after the first run."""
    world = World(infos={"run-1": {"torch": "", "steps": 0}})

    result = run(world, tmp_path)

    assert (result.comparison.verdict, world.names) == ("not_judged", ["run-1"])
    assert reason_of(result.comparison) == "train.py never imported torch: nothing to compare"


def test_a_script_that_does_nothing_is_not_judged(tmp_path, monkeypatch):
    """Torch was imported, but there is nothing to compare."""
    monkeypatch.setattr(FakeRecord, "events", lambda *_: iter(()))

    result = run(World(), tmp_path)

    assert (
        reason_of(result.comparison)
        == "train.py took no step and read no value out of torch: nothing to compare"
    )


FAILED = {"status": "failed", "failure": "ValueError: no", "steps": 3, "exit_status": 1}


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        (("run-1", "run-2"), "train.py failed in both runs: ValueError: no (at step 3, exit status 1)"),
        (
            ("run-2",),
            "train.py failed in run 2 only: ValueError: no (at step 3, exit status 1); run 1 did not fail",
        ),
    ],
)
def test_a_failing_script_is_not_judged(tmp_path, failing, reason):
    """Statuses and the last line of the traceback are in the reason."""
    world = World(infos=dict.fromkeys(failing, FAILED), statuses=dict.fromkeys(failing, 1))

    result = run(world, tmp_path)

    assert ("not_judged", reason) == (result.comparison.verdict, reason_of(result.comparison))


def test_a_difference_before_a_failure_is_a_verdict(tmp_path):
    """The failure is then a note."""
    world = World(infos={"run-2": FAILED}, statuses={"run-2": 1}, verdicts={"run-2": different(1)})

    result = run(world, tmp_path, localise=False)

    assert result.comparison.verdict == "different"
    assert "failed in run 2 only" in notes_of(result.comparison)[-1]


def test_the_same_exit_status_is_judged_with_a_note(tmp_path):
    """`sys.exit(3)` in both runs."""
    world = World(statuses={"run-1": 3, "run-2": 3})

    result = run(world, tmp_path)

    assert result.comparison.verdict == "identical"
    assert "exit status 3 in both runs" in notes_of(result.comparison)[-1]


def test_another_exit_status_is_not_identical(tmp_path):
    """Equal bits and other statuses: not judged."""
    world = World(statuses={"run-2": 3})

    result = run(world, tmp_path)

    assert result.comparison.verdict == "not_judged"


def test_stress_perturbs_each_run_differently_and_pairs_alike(tmp_path):
    """The localising pair has the perturbations of the runs that differed."""
    world = World(
        verdicts={"run-3": different(1), "op-1b": different(1)},
        origins={"op-1b": OriginSearch((finding(kind="draw"),))},
    )

    result = run(world, tmp_path, runs=3, stress=True)

    first, second, third, op_a, op_b = world.perturbations
    assert len({p.stress for p in (first, second, third)}) == 3
    assert (first, third) == (op_a, op_b)
    assert [note[:17] for note in notes_of(result.comparison)] == [
        f"stress in run {n}: "[:17] for n in (1, 2, 3)
    ]


def test_stress_speaks_for_the_differences_in_environment_that_it_makes(tmp_path):
    """Whatever else a note says: a folder or a child's command may be called as such a variable is."""
    made = [
        FactDifference(("variables",), "1", "2", "PYTHONHASHSEED"),
        FactDifference(("variables",), "85", None, "MALLOC_PERTURB_"),
        FactDifference(("python", "hash_seed"), "1", "2"),
    ]
    others = [FactDifference(("variables",), "1", "4", "OMP_NUM_THREADS")]
    own = Note.of(NoteCode.CHILD_NOT_RECORDED, "PYTHONHASHSEED=0 python train.py", "")
    notes = (*(Note.of(NoteCode.ENVIRONMENT, fact) for fact in (*made, *others)), own)
    world = World(verdicts={"run-2": replace(IDENTICAL, notes=notes)})

    kept = run(world, tmp_path, stress=True).comparison.notes[:-2]
    assert kept == (Note.of(NoteCode.ENVIRONMENT, others[0]), own)
    assert run(world, tmp_path / "plain").comparison.notes == notes


def test_records_of_another_verification_are_not_overwritten(tmp_path):
    """--keep DIR with records in it is refused before anything runs."""
    (tmp_path / "run-1.sbr").write_bytes(b"")
    world = World()

    with pytest.raises(SamebitsError, match="exists and is not overwritten") as caught:
        run(world, tmp_path)

    assert (caught.value.slug, world.names) == ("record-exists", [])
