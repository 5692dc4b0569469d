"""Whose a mismatch with a lock is where neither code nor settings explain it: what an operation shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from samebits.causes import Cause, OriginKind
from samebits.commands.lock.entry import LockEntry
from samebits.commands.lock.outcome import Blame, EntryResult, OldCode, Proof, RestoredSetting
from samebits.commands.lock.rest import with_rest
from samebits.comparison.environments import EnvironmentDifference, FactDifference
from samebits.comparison.results import Comparison, Diagnosis, Finding, Origin
from samebits.environment.influence import Results, Strength
from samebits.records.kinds import EventKind
from samebits.report import lock_sentences as sentences
from samebits.verification import Verification

THREADS = (RestoredSetting("OMP_NUM_THREADS", "2"),)
LOCKED = {"torch": {"version": "2.13.0", "threads": {"intra-op": 2}}, "variables": {"OMP_NUM_THREADS": "2"}}


def differs(
    path: tuple[str, ...], entry: str | None = None, first: str | None = "1"
) -> EnvironmentDifference:
    """A difference of the platform."""
    return EnvironmentDifference(FactDifference(path, first, "2", entry), (Results.ALL,), Strength.POSSIBLE)


OMP = differs(("variables",), "OMP_NUM_THREADS", "2")
TORCH = differs(("torch", "version"))
NUMPY = differs(("packages",), "numpy")
UNUSED = differs(("packages",), "tqdm", None)
PROCESSOR = differs(("machine", "instructions"))


def begins(kind: OriginKind, op: str, **facts) -> Verification:
    """A comparison whose first finding is given."""
    origin = Origin(EventKind.OP, 0, op, None, None, None, facts.pop("inputs_equal", None))
    finding = Finding(replace(origin, origin_kind=kind, **facts), Diagnosis(Cause.UNKNOWN))
    return Verification(Comparison("different", None, 1, (finding,)), (), (), 0.0)


KERNEL = begins(OriginKind.KERNEL, "aten::silu.default", inputs_equal=True)
MADE = begins(OriginKind.KERNEL, "aten::linspace.default")
LOADED = begins(OriginKind.KERNEL, "image::read_file.default")
STORAGE = begins(OriginKind.OUTSIDE, "aten::set_.source_Storage")
NUMBER = begins(OriginKind.ARGUMENT, "aten::mul.Scalar", inputs_equal=True)
OTHER_OP = begins(OriginKind.CONTROL_FLOW, "aten::ge.Scalar", other_op="aten::gt.Scalar", events=(3, 3))
ELSEWHERE = begins(OriginKind.CONTROL_FLOW, "aten::ge.Scalar", events=(3, None))
STATE = begins(OriginKind.UNINITIALIZED, "aten::empty.memory_format")


def result(*platform: EnvironmentDifference, operations: Verification | None, **more) -> EntryResult:
    """A mismatch whose settings were tried, where there are some."""
    entry = LockEntry("train", ("train.py",), None, 3, (), environment=LOCKED)
    return EntryResult(entry, "different", platform=platform, operations=operations, **more)


@pytest.mark.parametrize(
    ("platform", "operations", "blame"),
    [
        ([TORCH], KERNEL, Blame.PLATFORM),
        ([TORCH], MADE, Blame.PLATFORM),
        ([TORCH], OTHER_OP, Blame.PLATFORM),
        ([PROCESSOR], OTHER_OP, Blame.PLATFORM),
        ([TORCH], STORAGE, Blame.UNRECORDED),
        ([TORCH, UNUSED], STORAGE, Blame.UNRECORDED),
        ([TORCH, UNUSED], LOADED, Blame.UNRECORDED),
        ([TORCH], NUMBER, Blame.UNDECIDED),
        ([TORCH], ELSEWHERE, Blame.UNDECIDED),
        ([TORCH], STATE, Blame.UNDECIDED),
        ([TORCH], None, Blame.UNDECIDED),
        ([NUMPY], STORAGE, Blame.UNDECIDED),
        ([PROCESSOR], STORAGE, Blame.UNDECIDED),
        ([], STORAGE, Blame.UNRECORDED),
        ([], None, Blame.UNRECORDED),
        ([], KERNEL, Blame.UNRECORDED),
    ],
)  # fmt: skip
def test_the_platform_is_blamed_where_an_operation_shows_it(platform, operations, blame):
    """Not because it is different: values may have come from outside."""
    found = with_rest(result(*platform, operations=operations))
    assert found.blame is blame
    assert found.proof is Proof.INFERRED
    assert sentences.blame_text(found)
    both = with_rest(result(*platform, operations=operations, old_code=OldCode.OTHERS))
    with_change = {Blame.PLATFORM: Blame.BOTH, Blame.UNRECORDED: Blame.CHANGE_AND_UNRECORDED}
    assert both.blame is with_change.get(blame, blame)


@pytest.mark.parametrize("operations", [None, STORAGE, NUMBER, KERNEL])
def test_a_platform_whose_settings_were_tried_is_not_blamed(operations, monkeypatch):
    """With them, nothing of it is different any more."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = with_rest(result(OMP, operations=operations, tried=THREADS))
    assert (found.blame, found.proof) == (Blame.UNRECORDED, Proof.TRIED)
    text = sentences.blame_text(found)
    assert "The settings of the lock (OMP_NUM_THREADS=2) do not bring its bits back" in text
    assert "nothing that the lock holds is different" not in text
    assert with_rest(result(OMP, TORCH, operations=None, tried=THREADS)).blame is Blame.UNDECIDED


def test_what_is_known_to_differ_is_said_and_shown():
    """A changed file, beside something that the lock does not hold."""
    code = EnvironmentDifference(
        FactDifference(("code",), "dd16", "e5e3", "train.py"), (Results.ALL,), Strength.INPUT
    )
    for old_code in (OldCode.SAME, OldCode.OTHERS):
        found = with_rest(result(operations=STORAGE, inputs=(code,), old_code=old_code))
        assert sentences.facts(found) == ("code of train.py: dd16 and e5e3",)
        assert "the code differs from that of the lock" in sentences.blame_text(found)
        assert "nothing that the lock holds" not in sentences.blame_text(found)
        assert sentences.place_label(found) == "comes in at"
    assert "samebits check --update train" in sentences.next_text(found, "/repo")


def test_an_undecided_platform_names_what_differs():
    """Both are possible, and running the old code would show nothing more."""
    found = with_rest(result(NUMPY, operations=STORAGE))
    assert sentences.facts(found) == ("package numpy: 1 and 2",)
    assert "or something that the lock does not hold" in sentences.blame_text(found)
    assert "samebits check --update train" in sentences.next_text(found, "/repo")


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("/repo/samebits.lock", "samebits check --update train"),
        ("/repo/ci/samebits.lock", "samebits check --lock ci/samebits.lock --update train"),
        ("/other place/a.lock", "samebits check --lock '../other place/a.lock' --update train"),
    ],
)
def test_the_advice_finds_the_lock_file(lock, command):
    """It is a command line, for the folder that the user is in."""
    found = replace(with_rest(result(NUMPY, operations=STORAGE)), lock=lock)
    assert sentences.next_text(found, "/repo") == f"if this is wanted: {command}"
