"""The parts of lock files: rows, text, hunks, settings."""

from __future__ import annotations

import hashlib
import math
import subprocess
from dataclasses import replace

import pytest

from samebits._text.masking import Masker
from samebits.commands.lock.change import masked_change, places_between, reverted, smallest
from samebits.commands.lock.entry import (
    END,
    LockEntry,
    LockRow,
    _groups,
    first_mismatch,
    locked_environment,
)
from samebits.commands.lock.file import LockFile, check_name, default_name, read_lock, write_lock
from samebits.commands.lock.old_code import Commit, Repository
from samebits.commands.lock.old_commits import Locked, old_commits
from samebits.commands.lock.outcome import Change, Hunk, Proof, RestoredSetting
from samebits.commands.lock.settings import those_needed
from samebits.commands.lock.trees import _moved, put, source_folders
from samebits.comparison.step_digests import StepDigest
from samebits.errors import SamebitsError
from samebits.records.events import RunInfo
from samebits.records.kinds import Level
from samebits.switches.switch import Control

A, B, C = "a" * 32, "b" * 32, "c" * 32


def entry(**changes) -> LockEntry:
    """An entry with something in every part."""
    rows = (
        LockRow(0, 0, A, "", (("loss", 2.5), ("read", math.inf))),
        LockRow(1, 2, B, C, (("loss", math.nan),)),
        LockRow(END, END, "", C),
    )
    environment = {
        "machine": {"architecture": "x86_64", "instructions": ["avx", "fma"]},
        "python": {"version": "3.11.7", "optimize": 0},
        "torch": {"version": "2.13.0", "gpus": [], "threads": {"intra-op": 2}},
        "variables": {"OMP_NUM_THREADS": "2"},
        "packages": {"numpy": "2.4.6"},
        "code": {"train.py": {"sha256": "0123456789abcdef"}},
        "data": {"files": {'a "b".csv': {"sha256": "0123456789abcdef", "size": 3, "count": 1}}},
    }
    control = Control(seed=3, portable=True, switches=(("threads", "2"),))
    made = LockEntry(
        "train", ("train.py", "a b"), control, 3, rows,
        interventions=("clock",), max_steps=3, environment=environment, commit="f" * 40,
        samebits="1", trace=2,
    )  # fmt: skip
    return replace(made, **changes)


def test_a_file_gives_back_what_was_written(tmp_path):
    """Every field, and infinite values too."""
    path = tmp_path / "samebits.lock"
    plain = entry(name="plain", control=None, interventions=(), max_steps=None, commit="", trace=0)
    tested = entry(name="tested", command=(), test="a b/test_it.py::test_it[x-1]", trace=0)
    entries = {"train": entry(), "plain": plain, "tested": tested}
    write_lock(LockFile(path, entries))
    found = read_lock(path).entries
    for name, wanted in entries.items():
        assert repr(found[name]) == repr(wanted)  # NaN is not equal to itself


def test_writing_twice_gives_the_same_text(tmp_path):
    """So that a pull request shows only what changed."""
    path = tmp_path / "samebits.lock"
    write_lock(LockFile(path, {"b": entry(name="b"), "a": entry(name="a")}))
    text = path.read_text()
    write_lock(read_lock(path))
    assert path.read_text() == text
    assert text.index("[run.a]") < text.index("[run.b]")


@pytest.mark.parametrize(
    ("old", "new"), [(A, C), ("seed = 3", "seed = 4"), ("2.13.0", "2.14.0"), ("2.5", "2.6")]
)
def test_any_edit_is_noticed(tmp_path, old, new):
    """Of digests, control, environment and values."""
    path = tmp_path / "samebits.lock"
    write_lock(LockFile(path, {"train": entry()}))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SamebitsError) as caught:
        read_lock(path)
    assert caught.value.slug == "lock-edited"


@pytest.mark.parametrize("name", ["", "a b", "../a", "-a", "a" * 101, "ü"])
def test_names_that_are_no_names(name):
    """They become file names and words of a command."""
    with pytest.raises(SamebitsError):
        check_name(name)


def test_rows_of_a_long_run_do_not_depend_on_its_length():
    """A run that is stopped early has the same rows up to there, apart from a last one that is not full."""
    steps = [StepDigest(i, i, True, f"{i:032x}", "") for i in range(5000)]
    whole = [tuple(each.first for each in group) for group in _groups(steps)]
    assert sum(map(len, whole)) == 5000
    assert len(whole) < 800
    assert all(len(group) == 1 for group in whole[:100])
    for length in (1, 99, 100, 101, 307, 1234):
        part = [tuple(each.first for each in group) for group in _groups(steps[:length])]
        full = part if part[-1] == whole[len(part) - 1] else part[:-1]
        assert full == whole[: len(full)]


def test_the_first_mismatch_is_found():
    """A digest, a missing row, a row more; not beyond the last step of a run that was stopped."""
    rows = entry().rows
    assert first_mismatch(rows, rows) is None
    other = (rows[0], replace(rows[1], state=A), rows[2])
    found = first_mismatch(rows, other)
    assert (found.row, found.of_state, found.last_step) == (1, True, 2)
    assert first_mismatch(rows, other, up_to=0) is None
    values = first_mismatch(rows, (rows[0], replace(rows[1], values=A), rows[2]))
    assert not values.of_state
    assert first_mismatch(rows, rows[:2]).here is None
    assert first_mismatch(rows[:2], rows).locked is None
    numbers = (replace(rows[0], numbers=(("loss", 9.0),)), *rows[1:])
    assert first_mismatch(rows, numbers) is None


def test_a_text_that_git_would_take_for_an_option_is_no_commit(tmp_path):
    """`git log --output=FILE` writes a file."""
    path = tmp_path / "samebits.lock"
    write_lock(LockFile(path, {"train": entry(commit="--output=x")}))
    with pytest.raises(SamebitsError) as caught:
        read_lock(path)
    assert caught.value.slug == "lock-damaged"


def git(folder, *words) -> None:
    """Run git, as somebody."""
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *names, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """A repository with one module."""
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("import os\n\nx = 1\ny = 2\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "one")
    return Repository.of(tmp_path)


def test_hunks_are_the_places_that_can_have_an_effect(repository):
    """No comments, no blank lines; each can be taken back by itself."""
    new = "# about\nimport os\n\nx = 3\n\n# then\ny = 2\nz = 4\n"
    (repository.root / "a.py").write_text(new)
    hunks = places_between(repository, "HEAD", "").likely
    assert [(hunk.line, hunk.before, hunk.after) for hunk in hunks] == [
        (4, ("x = 1\n",), ("x = 3\n", "\n", "# then\n")),
        (8, (), ("z = 4\n",)),
    ]
    assert reverted(new, hunks[:1]) == "# about\nimport os\n\nx = 1\ny = 2\nz = 4\n"
    assert reverted(new, hunks) == "# about\nimport os\n\nx = 1\ny = 2\n"
    everything = places_between(repository, "HEAD", "").all
    assert reverted(new, everything) == repository.text_at("HEAD", "a.py")


def test_a_file_that_was_added_or_removed_is_one_hunk(repository):
    """The whole file."""
    (repository.root / "a.py").unlink()
    assert [hunk.after for hunk in places_between(repository, "HEAD", "").likely] == [()]
    assert reverted("", [Hunk("a.py", 1, ("x\n",), ())]) == "x\n"


def test_only_a_newline_ends_a_line(repository):
    """As git and Python count; `str.splitlines` ends lines at a form feed and in a long string, too."""
    old = 'import os\n\f\ns = "a\u2028b\x85c"\nx = 1\ny = 2'
    (repository.root / "a.py").write_text(old)
    git(repository.root, "commit", "-q", "-a", "-m", "one\u2028line\x85and\x0cmore")
    (commit,) = repository.history("-1")
    assert (len(commit.sha), commit.subject) == (40, "one\u2028line\x85and\x0cmore")
    new = old.replace("x = 1", "x = 3")
    (repository.root / "a.py").write_text(new)
    hunks = list(places_between(repository, "HEAD", "").all)
    assert hunks == [Hunk("a.py", 4, ("x = 1\n",), ("x = 3\n",))]
    assert reverted(new, hunks) == old
    (repository.root / "a.py").write_text('import os\n\ns = "a\u2028b\x85c"\n')
    change = Change(None, commit, (Hunk("a.py", 3, (), ('s = "a\u2028b\x85c"\n',)),), Proof.TRIED)
    assert masked_change(change, Masker(), repository).hunks == change.hunks


def test_what_can_hardly_matter_is_a_place_all_the_same(repository):
    """A script can read a page of documentation, a blank line and its own comments; not a lock file."""
    root = repository.root
    for name in ("page.md", "words.txt", "samebits.lock", "samebits.lock.d/a.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("one\n")
    (root / "a.py").write_text("# about\nimport os\n\nx = 1\ny = 2\n")
    (root / "words.txt").write_text("one\n\n")
    git(root, "add", "-A", "-N")
    places = places_between(repository, "HEAD", "")
    assert [each.file for each in places.likely] == ["words.txt"]
    assert [each.file for each in places.all] == ["a.py", "page.md", "words.txt"]


def test_links_and_files_that_are_no_text_are_named(repository):
    """Each may become the other; none is taken for a text that was added."""
    root = repository.root
    (root / "link").symlink_to("a.py")
    (root / "data").write_bytes(b"\0")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "two")
    for name in ("link", "data"):
        (root / name).unlink()
        (root / name).write_text("text\n")
    (root / "a.py").unlink()
    (root / "a.py").symlink_to("data")
    places = places_between(repository, "HEAD", "")
    assert (places.all, places.no_text) == ((), ("a.py", "data", "link"))


def test_a_tree_is_written_without_a_change_of_what_its_links_lead_to(tmp_path):
    """Folders that git does not track are links to the user's."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a.txt").write_text("mine")
    (mine / "b.txt").write_text("mine")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "folder").symlink_to(mine)
    (tree / "link.txt").symlink_to(mine / "a.txt")
    put(tree, "folder/a.txt", "other")
    put(tree, "link.txt", "other")
    put(tree, "new/c.txt", "other")
    put(tree, "folder/b.txt", None)
    put(tree, "new/d.txt", "other")
    put(tree, "new/d.txt", None)
    put(tree, "folder/nothing.txt", None)
    assert [(tree / name).read_text() for name in ("folder/a.txt", "link.txt", "new/c.txt")] == ["other"] * 3
    assert not (tree / "folder" / "b.txt").exists()
    assert not (tree / "new" / "d.txt").exists()
    assert [path.read_text() for path in sorted(mine.iterdir())] == ["mine", "mine"]


def test_records_that_somebody_tracks_are_no_change(repository):
    """Each check writes them anew; trying them would take runs."""
    records = repository.root / "sub" / ".samebits" / "lock"
    records.mkdir(parents=True)
    for n in range(2):
        (records / "run.values").write_text(str(n))
        (repository.root / "a.py").write_text(f"x = {n}\n")
        if n == 0:
            git(repository.root, "add", "-A")
            git(repository.root, "commit", "-q", "-m", "two")
    assert repository.changed_files("HEAD") == ("a.py",)


def test_the_working_tree_can_be_checked_out(repository, tmp_path_factory):
    """Changed and removed files as they are now, untracked ones as links."""
    (repository.root / "a.py").write_text("x = 5\n")
    (repository.root / "data").mkdir()
    (repository.root / "data" / "d.txt").write_text("d")
    into = tmp_path_factory.mktemp("tree")
    folder = repository.check_out("", into, math.inf)
    assert (folder / "a.py").read_text() == "x = 5\n"
    assert (folder / "data" / "d.txt").read_text() == "d"
    assert (folder / "data").is_symlink()
    old = repository.check_out("HEAD", tmp_path_factory.mktemp("old"), math.inf)
    assert (old / "a.py").read_text().startswith("import os")


def test_what_an_archive_would_leave_out_or_rewrite_is_checked_out(repository, tmp_path_factory):
    """`export-ignore` and `export-subst` are for archives; the index of the user's stays as it is."""
    root = repository.root
    (root / ".gitattributes").write_text("data.txt export-ignore\na.py export-subst\n")
    (root / "data.txt").write_text("d")
    (root / "a.py").write_text("x = '$Format:%H$'\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "two")
    before = (root / ".git" / "index").read_bytes()
    folder = repository.check_out("HEAD", tmp_path_factory.mktemp("tree"), math.inf)
    assert (folder / "data.txt").read_text() == "d"
    assert (folder / "a.py").read_text() == "x = '$Format:%H$'\n"
    assert sorted(path.name for path in folder.iterdir()) == [".gitattributes", "a.py", "data.txt"]
    assert (root / ".git" / "index").read_bytes() == before


@pytest.mark.parametrize(
    ("wanted", "most"),
    [({3}, 12), ({1, 6}, 30), ({0, 1, 2}, 30), (set(range(8)), 60), ({2, 13}, 40)],
)
def test_hunks_that_matter_together_are_found(wanted, most):
    """With a bound on the runs; the bits of the lock come back once all of them are taken back."""
    hunks = [Hunk("a.py", number, ("x\n",), ("y\n",)) for number in range(16)]
    tried = []

    def brings_back(some):
        tried.append(some)
        return wanted <= {hunk.line for hunk in some}

    assert {hunk.line for hunk in smallest(hunks, brings_back, most)} == wanted
    assert len(tried) <= most


def test_a_bound_on_the_runs_leaves_more_hunks_and_none_is_left_where_all_do_not_help():
    """What is left still brings the bits back."""
    hunks = [Hunk("a.py", number, ("x\n",), ("y\n",)) for number in range(16)]
    left = smallest(hunks, lambda some: {3, 12} <= {hunk.line for hunk in some}, 5)
    assert {3, 12} < {hunk.line for hunk in left}
    assert smallest(hunks, lambda some: False, 5) == ()


def test_only_the_settings_that_are_needed_stay():
    """Each is left out once."""
    settings = tuple(RestoredSetting(name, "1") for name in "abc")
    tried = []

    def gives_lock(some) -> bool:
        tried.append(some)
        return settings[1] in some

    assert those_needed(settings, gives_lock) == (settings[1],)
    assert len(tried) == 3


def test_a_file_name_that_is_no_text_can_be_locked(tmp_path):
    """Linux allows any bytes in the name of a data file."""
    facts = {"data": {"files": {"caf\udce9.csv": {"sha256": "0" * 64, "size": 1, "count": 1}}}}
    info = RunInfo(("train.py",), Level.STEP, "finished", environment=facts)
    lock = LockFile(tmp_path / "samebits.lock", {"train": entry(environment=locked_environment(info))})
    write_lock(lock)
    found = read_lock(lock.path).entries["train"].environment
    assert list(found["data"]["files"]) == ["caf\\udce9.csv"]


def test_secrets_in_a_change_are_masked(repository):
    """What a check shows goes into reports that others read."""
    token = "hf_abcdefghijklmnopqrstuvwx1234"  # noqa: S105 - a made-up one
    (repository.root / "train.py").write_text(f'import os\nlr = 0.25\nTOKEN = "{token}"\n')
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "-q", "-m", f"use {token}")
    (commit,) = repository.history("-1")
    hunk = Hunk("train.py", 2, ("lr = 0.5\n",), ("lr = 0.25\n", f'TOKEN = "{token}"\n'))
    change = Change(commit, Commit("b" * 40, token), (hunk,), Proof.TRIED)
    shown = masked_change(change, Masker(), repository)
    assert token not in repr(shown)
    assert shown.hunks[0].after == ("lr = 0.25\n", 'TOKEN = "***"\n')
    assert shown.hunks[0].before == hunk.before


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("conf.yaml", "api_keys:\n", "  - {}\n"),
        ("train.py", "PASSWORD = (\n", '    "{}"\n)\n'),
    ],
)
def test_the_name_of_a_secret_may_stand_in_a_line_that_was_not_changed(repository, name, head, line):
    old, new = "correct4horse", "battery9staple11"
    path = repository.root / name
    path.write_text(head + line.format(old))
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "-q", "-m", "one")
    path.write_text(head + line.format(new))
    (good,) = repository.history("-1")
    places = places_between(repository, good.sha, "")
    shown = masked_change(Change(None, good, places.all, Proof.TRIED), Masker(), repository)
    assert old in repr(places.all)
    assert old not in repr(shown)
    assert new not in repr(shown)
    (before,), (after,) = shown.hunks[0].before, shown.hunks[0].after
    assert "***" in before == after


def sha_of(text: str) -> str:
    """The digits that a lock has of a file."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_commit_is_found_by_what_git_checks_out_and_tracks(tmp_path):
    """A script of any name, other line ends in the working tree, and a module that git does not track."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    (tmp_path / ".gitattributes").write_text("*.py text eol=crlf\n")
    (tmp_path / ".gitignore").write_text("_version.py\n")
    (tmp_path / "_version.py").write_text("version = 1\n")
    (tmp_path / "helper.py").write_bytes(b"a = 1\r\n")
    (tmp_path / "train").write_text("b = 1\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    made = Repository.of(tmp_path)
    assert made is not None
    code = {
        "train": sha_of("b = 1\n"),
        "helper": sha_of("a = 1\r\n"),
        "_version": sha_of("version = 1\n"),
    }
    lock = tmp_path / "samebits.lock"
    (found,) = old_commits(made, Locked(code, {}, "", lock, code.values()))
    assert found.subject == "one"
    other = {**code, "_version": sha_of("version = 2\n")}  # as the lock had it; here it is another
    assert old_commits(made, Locked(other, {}, "", lock, code.values())) == ()
    assert made.text_at(found.sha, "helper.py") == "a = 1\r\n"


def test_a_submodule_at_another_commit_is_left_alone(repository, tmp_path_factory):
    """Its folder in the other tree stays empty; the changed files beside it are copied."""
    made, git = repository.root, ["git", "-C", str(repository.root)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    subprocess.run([*git, "clone", "-q", str(made), str(made / "part")], check=True, capture_output=True)
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "-C", "part", *names, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    row = f"160000,{head.strip()},part"
    subprocess.run([*git, "update-index", "--add", "--cacheinfo", row], check=True)
    subprocess.run([*git, *names, "commit", "-q", "-m", "part"], check=True, capture_output=True)
    assert "part" in repository.changed_files("HEAD")
    tree = tmp_path_factory.mktemp("tree")
    repository.check_out("", tree, math.inf)
    assert list((tree / "part").iterdir()) == []


def test_modules_of_another_tree_are_searched_where_it_has_them(tmp_path, monkeypatch):
    """An editable installation names a folder of the user's tree; nothing is imported to find that."""
    package = tmp_path / "src" / "samebits_of_tree"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    folder = str((tmp_path / "src").resolve())
    assert source_folders(("train.py", "samebits_of_tree.inner", "no_such_module")) == (folder,)
    root = str(tmp_path.resolve())
    assert _moved(folder, root, "/tree") == "/tree/src"
    assert _moved("src", root, "/tree") == "src"
    assert _moved("/elsewhere", root, "/tree") == "/elsewhere"


@pytest.mark.parametrize(
    ("text", "name"),
    [("train", "train"), ("pkg.mod", "pkg.mod"), ("sp_ac\u00e9", "sp_ace"), ("\u4e2d", "script"),
     ("..a", "a"), ("_-x", "x"), ("a" * 300, "a" * 100)],
)  # fmt: skip
def test_every_script_has_a_usable_name(text: str, name: str) -> None:
    assert check_name(default_name(text)) == name
