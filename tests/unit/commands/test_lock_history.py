"""Which commit is named, in histories of every shape; a file says what its code gives."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

import pytest

from samebits.commands.lock.change import find_change
from samebits.commands.lock.history import Search
from samebits.commands.lock.old_code import Repository
from samebits.commands.lock.old_commits import Locked, old_commits
from samebits.commands.lock.outcome import Proof, Relation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from samebits.commands.lock.old_code import Commit

GOOD = "2"


class History:
    """A repository whose code gives what is in the file `bits`; with `x` in it, it does not run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.runs: dict[str, bool | None] = {}

    def git(self, *words: str) -> str:
        """Run git, as somebody."""
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(self.folder), *names, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, subject: str, bits: str = "", **texts: str) -> None:
        """Commit what the code gives from now on, and other files."""
        if bits:
            texts["bits"] = f"# what it gives\n\n{bits}\n"
        for name, text in texts.items():
            (self.folder / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def merge(self, subject: str, *branches: str, bits: str = "") -> None:
        """Merge branches, also if they are in conflict."""
        words = ["git", "-C", str(self.folder), "merge", "-q", "--no-ff", "--no-commit", *branches]
        subprocess.run(words, check=False, capture_output=True)
        self.commit(subject, bits)

    def branch(self, name: str, start: str = "") -> None:
        """Make a branch, and check it out."""
        self.git("checkout", "-q", "-b", name, *filter(None, [start]))

    def switch(self, name: str) -> None:
        """Check a branch out."""
        self.git("checkout", "-q", name)

    @property
    def repository(self) -> Repository:
        """The repository as it is now."""
        made = Repository.of(self.folder)
        assert made is not None
        return made

    def found(self, subject: str) -> Commit:
        """The commit with a subject, in any branch."""
        every = self.repository.history("--all")
        return next(each for each in every if each.subject == subject)

    def gives(self, commit: str, texts: Mapping[str, str | None]) -> bool | None:
        """Run code, in place of a script."""
        text = texts["bits"] if "bits" in texts else self.repository.text_at(commit, "bits")
        value = (text or "").split("\n")[-2]
        result = None if value == "x" else value == GOOD
        if not texts:
            self.runs[commit] = result
        return result

    def blamed(self, old: str) -> tuple[str, str, Relation]:
        """The subjects of the commit that is named and the good one; each was run, as its parent was."""
        self.runs[self.found(old).sha] = True
        change = find_change(self.repository, self.found(old), self.gives)
        assert self.runs[change.good.sha] is True
        if change.commit is not None and change.relation is not Relation.APART:
            at_head = change.commit.sha == self.git("rev-parse", "HEAD")
            assert self.runs.get(change.commit.sha) is False or at_head
            parents = self.git("rev-parse", f"{change.commit.sha}^@").split()
            assert change.good.sha in parents
            assert (len(parents) > 1) == (change.relation is Relation.MERGE)
        assert change.proof is Proof.TRIED
        (hunk,) = change.hunks
        assert (hunk.file, hunk.line, hunk.before) == ("bits", 3, (f"{GOOD}\n",))
        return "" if change.commit is None else change.commit.subject, change.good.subject, change.relation


@pytest.fixture
def history(tmp_path: Path) -> History:
    """With a commit on `main` that gives other bits than the lock."""
    made = History(tmp_path)
    made.commit("base", "1")
    return made


@pytest.fixture
def feature(history: History) -> History:
    """With a lock on a branch, and a commit on `main` beside it."""
    history.branch("feature")
    history.commit("feature", GOOD)
    history.commit("lock")
    history.switch("main")
    history.commit("beside", readme="typo")
    return history


def test_a_commit_beside_the_lock_is_not_named(feature):
    """Its code is not that of the lock, and it did not come after it."""
    feature.merge("merge", "feature")
    for number in range(4):
        feature.commit(f"more {number}", readme=str(number))
    feature.commit("guilty", "3")
    feature.commit("later", readme="later")
    assert feature.blamed("lock") == ("guilty", "more 3", Relation.PARENT)
    assert feature.found("beside").sha not in feature.runs


@pytest.mark.parametrize("number", range(6))
def test_each_place_in_a_line_is_found(number, history):
    """Whatever the number of commits on both sides."""
    history.commit("lock", GOOD)
    for each in range(6):
        history.commit(f"commit {each}", "3" if each == number else "", readme=str(each))
    before = f"commit {number - 1}" if number else "lock"
    assert history.blamed("lock") == (f"commit {number}", before, Relation.PARENT)


def test_a_merge_whose_parents_are_good_is_named(history):
    """Its conflict was resolved with other bits."""
    history.commit("lock", GOOD)
    history.branch("side")
    history.commit("side", readme="side")
    history.switch("main")
    history.commit("main", note="main")
    history.merge("merge", "side", bits="3")
    history.commit("later", note="later")
    assert history.blamed("lock") == ("merge", "main", Relation.MERGE)


@pytest.mark.parametrize("order", ["main", "side"])
def test_the_guilty_commit_of_a_merged_branch_is_named(order, history):
    """On whichever side of the merge it is."""
    history.commit("lock", GOOD)
    history.branch("side")
    history.commit("side 1", readme="1")
    history.commit("guilty", "3")
    history.commit("side 2", readme="2")
    history.switch("main")
    history.commit("main 1", note="1")
    if order == "main":
        history.merge("merge", "side")
    else:
        history.switch("side")
        history.merge("merge", "main")
    history.commit("later", note="2")
    assert history.blamed("lock") == ("guilty", "side 1", Relation.PARENT)


def test_the_guilty_commit_of_one_of_three_merged_branches_is_named(history):
    """An octopus."""
    history.commit("lock", GOOD)
    for name in "abc":
        history.branch(name, "main")
        history.commit(f"{name} 1", **{f"file_{name}": "1"})
        history.commit(f"{name} 2", "3" if name == "b" else "", **{f"file_{name}": "2"})
    history.switch("main")
    history.commit("main", note="1")
    history.merge("octopus", "a", "b", "c")
    assert history.blamed("lock") == ("b 2", "b 1", Relation.PARENT)


def test_the_guilty_commit_of_branches_that_merged_each_other_is_named(history):
    """A criss-cross has two merge bases."""
    history.commit("lock", GOOD)
    history.branch("side")
    history.commit("side 1", readme="1")
    history.switch("main")
    history.commit("main 1", note="1")
    history.merge("main merges", "side")
    history.switch("side")
    history.merge("side merges", "main~1")
    history.commit("guilty", "3")
    history.switch("main")
    history.commit("main 2", note="2")
    history.merge("last", "side")
    assert history.blamed("lock") == ("guilty", "side merges", Relation.PARENT)


def test_a_merge_that_brings_other_bits_is_named_with_the_parent_that_was_good(feature):
    """The other branch never had the bits of the lock, so that none of its commits can be told."""
    feature.switch("feature")
    feature.merge("merge", "main", bits="1")
    assert feature.blamed("lock") == ("merge", "lock", Relation.MERGE)


def test_a_cherry_pick_is_named_where_it_took_effect(feature):
    """The commit that was picked is beside."""
    feature.branch("elsewhere", "feature")
    feature.commit("guilty", "3")
    feature.switch("main")
    feature.merge("merge", "feature")
    feature.git("cherry-pick", "elsewhere")
    feature.git("commit", "-q", "--amend", "-m", "picked")
    assert feature.blamed("lock") == ("picked", "merge", Relation.PARENT)


def test_after_a_squash_the_guilty_commit_is_named(feature):
    """The commit of the lock is in no history; the squashed one has its bits."""
    feature.git("merge", "-q", "--squash", "feature")
    feature.commit("squash")
    feature.commit("more", readme="more")
    feature.commit("guilty", "3")
    for number in range(5):
        feature.commit(f"later {number}", note="line\n" * number)
    assert feature.blamed("lock") == ("guilty", "more", Relation.PARENT)


def test_after_a_rebase_the_guilty_commit_is_named(feature):
    """The same for each commit of the branch."""
    old = feature.found("lock").sha
    feature.git("branch", "old", "feature")
    feature.git("rebase", "-q", "main", "feature")
    feature.commit("guilty", "3")
    assert feature.found("guilty").sha != old
    (lock,) = feature.repository.history("-1", "old")
    change = find_change(feature.repository, lock, feature.gives)
    assert change.commit is not None
    assert (change.commit.subject, change.relation) == ("guilty", Relation.PARENT)


def test_where_no_commit_of_the_history_is_good_none_is_blamed(feature):
    """The lock is from a branch that was given up."""
    feature.commit("more", "3")
    assert feature.blamed("lock") == ("more", "lock", Relation.APART)
    assert feature.repository.history("-1", "HEAD").popitem()[0].subject == "more"


def test_a_comment_is_tried_if_nothing_else_brings_the_bits_back(tmp_path):
    """A script can read it; a file that was added is absent then, not empty."""
    made = History(tmp_path)
    made.commit("lock", **{"a.py": "x = 1\n"})
    made.commit("guilty", **{"a.py": "# about\nx = 1\n", "b.py": "y = 1\n"})
    tried = []

    def gives(commit: str, texts: Mapping[str, str | None]) -> bool:
        tried.append(dict(texts))
        return texts.get("a.py") == "x = 1\n"

    change = find_change(made.repository, made.found("lock"), gives)
    assert [(hunk.file, hunk.after) for hunk in change.hunks] == [("a.py", ("# about\n",))]
    assert tried[0] == {"b.py": None}


def test_code_that_does_not_run_is_not_blamed(history):
    """Only those around it are known."""
    history.commit("lock", GOOD)
    history.commit("broken", "x")
    history.commit("mended", GOOD)
    history.commit("guilty", "3")
    history.commit("later", readme="later")
    assert history.blamed("lock") == ("guilty", "mended", Relation.PARENT)


def test_commits_that_do_not_run_between_good_and_bad_are_told(history):
    """Which of them it was is not known."""
    history.commit("lock", GOOD)
    history.commit("broken", "x")
    history.commit("mended", "3")
    history.commit("later", readme="later")
    assert history.blamed("lock") == ("mended", "lock", Relation.APART)


def test_what_is_not_committed_is_told(history):
    """Whether the commit that is checked out runs or not."""
    history.commit("lock", GOOD)
    (history.folder / "bits").write_text("# what it gives\n\n3\n")
    assert history.blamed("lock") == ("", "lock", Relation.PARENT)
    history.commit("broken", "x")
    (history.folder / "bits").write_text("# what it gives\n\n3\n")
    assert history.blamed("lock") == ("", "lock", Relation.APART)


def test_no_commit_is_run_twice(feature):
    """A run takes long."""
    feature.merge("merge", "feature")
    feature.commit("guilty", "3")
    runs = []

    def gives(commit, texts):
        runs.append(commit)
        return feature.gives(commit, texts)

    Search(feature.repository, gives).step_after(feature.found("lock"))
    assert sorted(runs) == sorted(set(runs))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_old_commit_has_the_data_of_the_lock_too(tmp_path):
    """And the commit that was recorded is tried, where nothing tells that the data are others."""
    made = History(tmp_path)
    made.commit("recorded", **{"a.py": "x = 1\n", "cfg.json": "1\n"})
    made.commit("lock", **{"samebits.lock": "1"})
    made.commit("guilty", **{"cfg.json": "2\n"})
    made.commit("another lock", **{"samebits.lock": "2"})
    code, recorded = {"a": sha("x = 1\n")}, made.found("recorded").sha
    lock = tmp_path / "samebits.lock"

    def subjects(data: Mapping[str, str]) -> list[str]:
        found = old_commits(made.repository, Locked(code, data, recorded, lock, code.values()))
        return [each.subject for each in found]

    assert subjects({"cfg.json": sha("1\n")}) == ["recorded"]
    assert subjects({}) == ["another lock", "recorded"]
    assert subjects({"cfg.json": sha("3\n")}) == ["recorded", "another lock"]
    assert subjects({"ignored.txt": sha("3\n")}) == ["another lock", "recorded"]
