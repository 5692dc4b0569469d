"""The verdict over a script and the processes that it starts."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from finding_support import finding
from sentence_support import notes_of, reason_of, text_reason

from samebits.comparison.results import Comparison
from samebits.verification._child_records import with_children
from samebits.verification._state import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ = finding(kind="read", step=1, op="item")
SAME = Comparison("identical", None, 3, state="identical")
REPORTED = Comparison(
    "different", text_reason("1 reported value differs"), 3, state="identical", reported=(READ,)
)
STATE = Comparison("different", text_reason("the state differs at step 2"), 3, (READ,), state="different")
UNKNOWN = Comparison("not_judged", text_reason("the first run failed"), 2)


class Folder:
    """Two runs, whose children are judged as the test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.judged: dict[str, Comparison] = {}

    def child(self, name: str, found: Comparison, runs: tuple[int, ...] = (1, 2)) -> None:
        """A child of these runs, and how it is judged."""
        self.judged[name.replace("/", "-")] = found
        for run in runs:
            *outer, last = name.split("/")
            folder = self.path / f"run-{run}.children"
            for part in outer:
                folder = folder / f"{part}.children"
            folder.mkdir(parents=True, exist_ok=True)
            for part in outer:
                (folder.parent / f"{part}.sbr").touch()
            (folder / f"{last}.sbr").touch()

    def verdict(self, comparison: Comparison) -> Comparison:
        """That over both runs, where the script itself is judged so."""
        records = str(self.path / "run-1.sbr"), str(self.path / "run-2.sbr")
        return with_children(comparison, records, Tools(open_record=self._open, judge=self._judge))

    @contextmanager
    def _open(self, path: str) -> Iterator[Any]:
        yield Trained(path)

    def _judge(self, a: Any, b: Any, excluded: Any = ()) -> Comparison:
        inside = [part.removesuffix(".sbr").removesuffix(".children") for part in a.path.split("/")]
        number = next(i for i, part in enumerate(inside) if part == "run-1")
        return self.judged.get("-".join(inside[number + 1 :]), SAME)


class Trained:
    """A record with a step."""

    def __init__(self, path: str) -> None:
        self.path = path

    def events(self, *_: Any) -> Iterator[str]:
        """It took a step."""
        return iter(["step"])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_without_children_the_verdict_is_that_of_the_script(folder: Folder) -> None:
    assert folder.verdict(REPORTED) is REPORTED


def test_children_are_looked_at_where_the_script_only_reports_other_values(folder: Folder) -> None:
    """`--state-only` would pass a run whose child trained something else."""
    folder.child("train-1", STATE)
    found = folder.verdict(REPORTED)
    assert (found.verdict, found.state, found.child) == ("different", "different", "train-1")
    assert reason_of(found) == "in the child process train-1: the state differs at step 2"


def test_other_children_that_differ_are_named(folder: Folder) -> None:
    """Each rank of a launcher is a child: only the first is explained."""
    folder.child("train-1", STATE)
    folder.child("train-2", replace(STATE, first_step=4))
    folder.child("train-3", SAME)
    found = folder.verdict(SAME)
    assert found.child == "train-1"
    assert notes_of(found)[-1] == "the state differs in other child processes too: train-2 at step 4"


def test_a_child_that_trained_in_one_run_only_leaves_the_state_open(folder: Folder) -> None:
    folder.child("train-1", SAME, runs=(1,))
    found = folder.verdict(SAME)
    assert (found.verdict, found.state) == ("not_judged", "not_judged")
    assert "no record of it in the second run" in str(reason_of(found))
    found = folder.verdict(REPORTED)
    assert (found.verdict, found.state) == ("different", "not_judged")
    assert "training is identical" not in str(reason_of(found))
    assert "no record of it in the second run" in str(reason_of(found))


def test_a_difference_outranks_a_child_that_cannot_be_judged(folder: Folder) -> None:
    folder.child("a-1", UNKNOWN)
    folder.child("b-1", STATE)
    assert folder.verdict(SAME).child == "b-1"


def test_a_child_that_failed_is_named(folder: Folder) -> None:
    folder.child("a-1", UNKNOWN)
    found = folder.verdict(SAME)
    assert (found.verdict, reason_of(found)) == (
        "not_judged",
        "in the child process a-1: the first run failed",
    )


def test_values_that_only_a_child_reports_are_reported_values(folder: Folder) -> None:
    folder.child("train-1", REPORTED)
    found = folder.verdict(SAME)
    assert (found.verdict, found.state, found.child) == ("different", "identical", "train-1")
    assert found.reported == (READ,)
    assert found.steps == 6


def test_reported_values_of_script_and_child_are_listed_together(folder: Folder) -> None:
    folder.child("train-1", REPORTED)
    found = folder.verdict(REPORTED)
    assert (found.verdict, found.state, found.child) == ("different", "identical", "")
    assert found.reported == (READ, READ)
    assert "2 reported values differ" in str(reason_of(found))


def test_the_children_of_children_count(folder: Folder) -> None:
    folder.child("launch-1/train-1", STATE)
    assert folder.verdict(SAME).child == "launch-1/train-1"


def test_what_several_processes_of_a_pool_did_cannot_be_compared(folder: Folder) -> None:
    folder.child("pool-1", STATE)
    folder.child("pool-2", STATE)
    assert folder.verdict(SAME).verdict == "not_judged"


def test_what_the_only_process_of_a_pool_that_trained_did_is_judged(folder: Folder) -> None:
    folder.child("pool-1", STATE)
    assert (folder.verdict(SAME).verdict, folder.verdict(SAME).child) == ("different", "pool-1")


def test_where_the_script_itself_differs_its_children_are_not_looked_at(folder: Folder) -> None:
    folder.child("train-1", replace(STATE, reason=text_reason("another")))
    assert folder.verdict(STATE) is STATE
