"""`samebits check` names the commit and the lines that changed the bits, whatever the history looks like."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = """\
import glob, json, pathlib, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = model(torch.randn(6, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


class Project:
    """A repository with a script, and its command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main", ".")
        self.write(".gitignore", ".samebits/\n")

    def git(self, *words: str) -> str:
        """Run git, as somebody."""
        names = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
        command = ["git", "-C", str(self.folder), *names, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def commit(self, message: str, name: str = "", text: str = "") -> str:
        """Write a file, if one is given, and commit everything; return the name of the commit."""
        if name:
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def samebits(self, *words: str, threads: int = 1) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return subprocess.run(
            [sys.executable, "-m", "samebits", *words],
            cwd=self.folder, env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    def lock(self, script: str = "train.py") -> None:
        """Lock a script, and commit the lock."""
        done = self.samebits("lock", "--trace", "0", script)
        assert done.returncode == 0, done.stderr
        self.commit(f"lock {script}")

    def blamed(self, *words: str, threads: int = 1) -> dict:
        """Return the only entry of `check --json`, which is different."""
        done = self.samebits("check", "--json", *words, threads=threads)
        assert done.returncode == 1, done.stderr + done.stdout
        (entry,) = json.loads(done.stdout)["entries"]
        return entry


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty repository."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder)


def rate(text: str) -> str:
    """The script with another learning rate."""
    return TRAIN.replace("lr=0.1", f"lr={text}")


def places(entry: dict) -> list[tuple[str, int]]:
    """The places that a check names."""
    return [(hunk["file"], hunk["line"]) for hunk in entry["change"]["hunks"]]


def test_after_a_merge_the_other_side_is_not_blamed(project):
    """The lock was written on a branch; the commits of the other side do not have its code."""
    project.commit("base", "train.py", TRAIN)
    project.git("checkout", "-q", "-b", "feature")
    project.commit("feature", "train.py", rate("0.2"))
    project.lock()
    project.git("checkout", "-q", "main")
    project.commit("README typo", "README.md", "typo\n")
    project.git("merge", "-q", "--no-ff", "-m", "Merge feature", "feature")
    merge = project.git("rev-parse", "HEAD")
    project.commit("guilty", "train.py", rate("0.3"))
    entry = project.blamed()
    assert (entry["blame"], entry["proof"], entry["change"]["proof"]) == ("change", "tried", "tried")
    assert entry["change"]["commit"]["subject"] == "guilty"
    assert (entry["change"]["good"]["sha"], entry["change"]["relation"]) == (merge, "parent")
    (hunk,) = entry["change"]["hunks"]
    assert ("lr=0.2" in hunk["before"][0], "lr=0.3" in hunk["after"][0]) == (True, True)


def test_a_merge_of_good_parents_is_named(project):
    """Its conflict was resolved so that the bits are others."""
    project.commit("base", "train.py", TRAIN)
    project.lock()
    project.git("checkout", "-q", "-b", "feature")
    project.commit("feature", "note.txt", "one\n")
    project.git("checkout", "-q", "main")
    project.commit("README typo", "README.md", "typo\n")
    project.git("merge", "-q", "--no-ff", "--no-commit", "feature")
    project.commit("Merge feature", "train.py", rate("0.3"))
    entry = project.blamed()
    assert (entry["change"]["commit"]["subject"], entry["change"]["relation"]) == ("Merge feature", "merge")
    assert entry["change"]["good"]["subject"] == "README typo"
    assert places(entry) == [("train.py", 4)]
    text = " ".join(project.samebits("check").stdout.split())
    assert f"merge {project.git('rev-parse', 'HEAD')[:10]} Merge feature, against its parent" in text


def test_a_subject_with_line_ends_of_other_kinds_is_one_line(project):
    """Text that was pasted from the web has such characters; a form feed in code ends no line either."""
    project.commit("base", "train.py", "\f\n# section\n" + TRAIN)
    project.lock()
    project.commit("docs:\u2028 pasted\x85from\x0cthe web", "README.md", "hello\n")
    project.commit("guilty \u2028 commit", "train.py", "\f\n# section\n" + rate("0.3"))
    entry = project.blamed()
    assert entry["change"]["commit"] == {
        "sha": project.git("rev-parse", "HEAD"),
        "subject": "guilty \u2028 commit",
    }
    assert places(entry) == [("train.py", 6)]


def test_a_lock_of_another_script_does_not_hide_the_change_of_a_data_file(project):
    """The commit that changed the lock file last has the code, and not the data."""
    project.write("other.py", TRAIN)
    project.write("cfg.json", '{"lr": 0.1}\n')
    project.commit("base", "train.py", rate('json.load(open("cfg.json"))["lr"]'))
    project.lock()
    project.commit("guilty", "cfg.json", '{"lr": 0.2}\n')
    project.lock("other.py")
    entry = project.blamed("train")
    assert (entry["blame"], entry["proof"]) == ("change", "tried")
    assert entry["change"]["commit"]["subject"] == "guilty"
    assert places(entry) == [("cfg.json", 1)]


def test_a_file_that_a_commit_adds_is_removed_as_before(project):
    """An empty one would still be found."""
    project.write("data/a.txt", "0.1\n")
    found = 'sum(float(open(f).read() or 9) for f in sorted(glob.glob("data/*.txt")))'
    project.commit("base", "train.py", rate(found))
    project.lock()
    project.commit("guilty", "data/b.txt", "0.2\n")
    entry = project.blamed()
    assert (entry["change"]["commit"]["subject"], entry["change"]["proof"]) == ("guilty", "tried")
    assert places(entry) == [("data/b.txt", 1)]


@pytest.mark.parametrize("more", ["", "unused = 1\n"], ids=["alone", "beside-code"])
def test_a_text_that_the_run_reads_is_a_place_whatever_its_name(more, project):
    """A page of documentation is one too, if the training reads it."""
    train = rate('len(pathlib.Path("corpus.md").read_text()) / 100')
    project.write("corpus.md", "to be or not\n")
    project.commit("base", "train.py", train)
    project.lock()
    project.write("train.py", train.replace("torch.manual_seed", f"{more}torch.manual_seed"))
    project.write("README.md", "about\n")
    project.commit("guilty", "corpus.md", "to be or not\nto be\n")
    entry = project.blamed()
    assert (entry["change"]["commit"]["subject"], entry["change"]["proof"]) == ("guilty", "tried")
    assert places(entry) == [("corpus.md", 2)]


@pytest.mark.parametrize("effect", [True, False])
def test_code_and_data_that_git_does_not_keep_are_both_told(project, effect):
    """The code, too, unless the old one gives the same bits with the new data."""
    project.write(".gitignore", ".samebits/\ndata.txt\n")
    project.write("data.txt", "1.0\n")
    text = TRAIN.replace("torch.randn(6, 4)", "torch.randn(6, 4) * float(open('data.txt').read())")
    project.commit("base", "train.py", text)
    project.lock()
    project.write("data.txt", "1.5\n")
    changed = text.replace("lr=0.1", "lr=0.2") if effect else f"{text}unused = 1\n"
    project.commit("change", "train.py", changed)

    entry = project.blamed()

    assert entry["blame"] == ("change" if effect else "data")
    assert any("data.txt" in each for each in entry["inputs"])
    assert any("code" in each for each in entry["inputs"]) == effect
    assert ("the code and the data differ" in entry["why"]) == effect


CHANCE = """
# The runs whose numbers are given come out otherwise, as chance would have it.
import itertools, os
def number():
    for each in itertools.count():
        try:
            os.mkdir({folder!r} + f"/{{each}}")
            return each
        except FileExistsError:
            pass
OTHERWISE = number() in {runs}
"""


def chance(folder: Path, *runs: int, before: str = "") -> str:
    """The script, with another learning rate in some runs."""
    folder.mkdir(exist_ok=True)
    text = TRAIN.replace("lr=0.1", "lr=0.2 if OTHERWISE else 0.1")
    return CHANCE.format(folder=str(folder), runs=runs) + before + text


@pytest.mark.parametrize("is_committed", [True, False])
def test_chance_that_looks_like_a_change_is_told_as_nondeterminism(is_committed, project, tmp_path):
    """The first three runs of the check agree, and then the old code gives the bits of the lock."""
    runs = 2, 3, 4
    project.commit("base", "train.py", chance(tmp_path / "runs", *runs))
    project.lock()
    project.write("train.py", chance(tmp_path / "runs", *runs, before="epochs = 2\n"))
    if is_committed:
        project.commit("innocent")
    entry = project.blamed()
    assert (entry["blame"], entry["change"]) == ("nondeterminism", None)


def test_chance_beside_a_setting_of_the_lock_is_told_as_nondeterminism(project, tmp_path):
    """With the variable as in the lock, a run gives the bits of the lock, and one more does not."""
    project.commit("base", "train.py", chance(tmp_path / "runs", 2, 3, 4, 7, 8, 9))
    project.lock()
    entry = project.blamed(threads=2)
    assert (entry["blame"], entry["settings"]) == ("nondeterminism", {})


def test_chance_without_any_difference_is_told_as_nondeterminism(project, tmp_path):
    project.commit("base", "train.py", chance(tmp_path / "runs", 2, 3, 4))
    project.lock()
    assert project.blamed()["blame"] == "nondeterminism"


def test_chance_that_the_trace_shows_gives_no_lock(project, tmp_path):
    project.commit("base", "train.py", chance(tmp_path / "runs", 2))
    done = project.samebits("lock", "--trace", "1", "train.py")
    assert done.returncode == 2
    assert "two runs of train.py gave different bits" in done.stderr
    assert not (project.folder / "samebits.lock").exists()


def test_code_that_was_chance_and_is_no_more_is_told(project, tmp_path):
    """The old code gives the bits of the lock only from time to time; the new one other bits each time."""
    project.commit("base", "train.py", chance(tmp_path / "runs", 2))
    project.lock()
    project.commit("fixed", "train.py", rate("0.15"))
    entry = project.blamed()
    assert (entry["blame"], entry["old_code"]) == ("nondeterminism", "chance")
    assert "two runs of the code of the lock on this machine gave different bits" in entry["why"]


CACHED = """\
import os, numpy, prepared
if not os.path.exists("cache/values.npy"):
    os.makedirs("cache", exist_ok=True)
    numpy.save("cache/values.npy", prepared.values())
"""


def test_a_cache_that_the_check_itself_filled_is_not_read_by_the_old_code(project):
    project.write(".gitignore", ".samebits/\ncache/\n__pycache__/\n")
    prepared = "import numpy\ndef values():\n    return numpy.ones(4, dtype='float32')\n"
    project.write("prepared.py", prepared)
    script = CACHED + TRAIN.replace("torch.randn(6, 4)", 'torch.from_numpy(numpy.load("cache/values.npy"))')
    project.commit("base", "train.py", script)
    project.lock()
    project.write("prepared.py", prepared.replace("numpy.ones", "2 * numpy.ones"))
    bad = project.commit("other values")
    shutil.rmtree(project.folder / "cache")
    entry = project.blamed()
    assert (entry["blame"], entry["proof"]) == ("change", "tried")
    assert (entry["change"]["commit"]["sha"], places(entry)) == (bad, [("prepared.py", 3)])


def test_a_script_that_looks_at_the_name_of_its_folder_is_run_in_one_of_that_name(project):
    seeded = TRAIN.replace("torch.manual_seed(0)", "torch.manual_seed(len(pathlib.Path.cwd().name))")
    project.commit("base", "train.py", seeded)
    project.lock()
    bad = project.commit("rate", "train.py", seeded.replace("lr=0.1", "lr=0.2"))
    entry = project.blamed()
    assert (entry["blame"], entry["change"]["commit"]["sha"]) == ("change", bad)


def test_data_beside_code_that_does_not_matter_has_one_name(project):
    """The script goes to the folder of its data, which the old code reaches through a link."""
    project.write(".gitignore", ".samebits/\ndata/\n")
    script = "import os\nos.chdir('data')\n" + TRAIN.replace("lr=0.1", 'lr=float(open("rate.txt").read())')
    project.write("data/rate.txt", "0.1")
    project.commit("base", "train.py", script)
    project.lock()
    project.write("data/rate.txt", "0.2")
    project.commit("harmless", "train.py", script.replace("range(2)", "range(1 + 1)"))
    entry = project.blamed()
    assert entry["blame"] == "data"
    assert len(entry["inputs"]) == 1
    assert "data/rate.txt" in entry["inputs"][0]
    assert "The code differs too, with the same bits (tried)" in entry["why"]


def test_a_large_text_is_not_called_no_text(project):
    rows = "1\n" * 600_000
    script = TRAIN.replace("lr=0.1", 'lr=0.1 * float(open("rows.csv").readline())')
    project.write("rows.csv", rows)
    project.commit("base", "train.py", script)
    project.lock()
    project.write("rows.csv", "2\n" + rows[2:])
    project.commit("other rows", "train.py", script.replace("range(2)", "range(1 + 1)"))
    text = " ".join(project.samebits("check").stdout.split())
    assert "with all changed lines as before, the bits are still others (tried)" in text
    assert "not tried: rows.csv (large, a link, or no text)" in text
