"""What was changed since the commit: a patch that git applies, without secrets and within limits."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from samebits.environment.repository import Patch, collect_patch, collect_source

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    answer = subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)
    return answer.stdout.decode()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "train.py").write_text("a = 1\nb = 2\n")
    (folder / "weights.bin").write_bytes(bytes(range(256)))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def applied(repository: Path, patch: Patch | None, tmp_path: Path) -> Path:
    """Return a fresh checkout with the patch."""
    assert patch is not None
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(repository), str(other))
    kept = json.loads(json.dumps(patch.diff))  # as a record does
    (tmp_path / "p").write_text(kept, encoding="utf-8", errors="surrogateescape", newline="")
    git(other, "apply", str(tmp_path / "p"))
    return other


def test_nothing_changed(repository: Path, tmp_path: Path) -> None:
    assert collect_patch(repository) == Patch()
    assert collect_patch(tmp_path) is None


@pytest.mark.parametrize("text", ["c = 3\nb = 2\n", "a = 1", "", "a = 1\r\nb = 2\r\n", "é\f\x1c = 1\n\n"])
def test_a_patch_gives_the_changed_files_again(repository: Path, tmp_path: Path, text: str) -> None:
    """Tracked files that were changed, binary too, and files of the run that git does not track."""
    (repository / "train.py").write_text(text, newline="")
    (repository / "weights.bin").write_bytes(bytes(reversed(range(256))))
    (repository / "new folder").mkdir()
    (repository / "new folder/own module.py").write_text(text or "x", newline="")
    (repository / "unrelated.txt").write_text("not of the run")
    patch = collect_patch(repository, [str(repository / "new folder/own module.py"), "/elsewhere/x.py"])
    assert patch is not None
    other = applied(repository, patch, tmp_path)

    assert not patch.masked
    for name in ("train.py", "weights.bin", "new folder/own module.py"):
        assert (other / name).read_bytes() == (repository / name).read_bytes(), name
    assert "unrelated" not in patch.diff


LATIN = b"# -*- coding: latin-1 -*-\n# caf\xe9\na = 1"
NAMES = ("sp ace.py", 'quo"te.py', "back\\slash.py", "new\nline.py", "tab\t.py", "\u00e9\u4e2d.py")


@pytest.mark.parametrize("contents", [LATIN, LATIN.replace(b"\n", b"\r\n")])
@pytest.mark.parametrize("name", NAMES)
def test_other_encodings_and_unusual_names_come_back_byte_for_byte(
    repository: Path, tmp_path: Path, name: str, contents: bytes
) -> None:
    """A file that git tracks, and one of the run that it does not."""
    (repository / name).write_bytes(b"a = 0\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "two")
    (repository / name).write_bytes(contents)
    new = repository / f"new {name}"
    new.write_bytes(contents)
    new.chmod(0o755)
    other = applied(repository, collect_patch(repository, [str(new)]), tmp_path)

    assert (other / name).read_bytes() == contents
    assert (other / new.name).read_bytes() == contents
    assert (other / new.name).stat().st_mode & 0o100


def test_modes_and_links_come_back(repository: Path, tmp_path: Path) -> None:
    (repository / "train.py").chmod(0o755)
    (repository / "weights.bin").unlink()
    (repository / "weights.bin").symlink_to("train.py")
    other = applied(repository, collect_patch(repository), tmp_path)

    assert (other / "train.py").stat().st_mode & 0o100
    assert (other / "weights.bin").readlink().name == "train.py"


def test_the_patch_of_a_subfolder_is_that_of_the_repository(repository: Path, tmp_path: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "train.py").write_text("a = 5\n")
    patch = collect_patch(repository / "sub")
    assert patch is not None

    assert (applied(repository, patch, tmp_path) / "train.py").read_text() == "a = 5\n"


def test_settings_of_git_do_not_change_the_patch(repository: Path, tmp_path: Path) -> None:
    """Nor are programs started that they name."""
    plain = repository / "train.py"
    plain.write_text("a = 7\n")
    expected = collect_patch(repository)
    for name, value in (
        ("diff.external", f"touch {tmp_path}/started"), ("diff.noprefix", "true"), ("color.diff", "always"),
        ("diff.mnemonicPrefix", "true"), ("diff.renames", "copies"), ("diff.context", "0"),
        ("core.fsmonitor", f"touch {tmp_path}/started; false"), ("diff.algorithm", "patience"),
        ("diff.relative", "true"),
    ):  # fmt: skip
        git(repository, "config", name, value)

    (repository / "sub").mkdir()
    of_subfolder = collect_patch(repository / "sub")

    assert (applied(repository, of_subfolder, tmp_path) / "train.py").read_text() == "a = 7\n"
    assert collect_patch(repository) == of_subfolder
    assert expected is not None
    assert expected.diff
    assert not (tmp_path / "started").exists()


def test_a_hook_of_another_repository_changes_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git names the repository of the commit to its hooks, and relative to where it runs them."""
    git(tmp_path, "init", "-q", "other")
    (repository / "train.py").write_text("a = 7\n")
    expected = collect_source(repository), collect_patch(repository)
    for folder in (str(tmp_path / "other/.git"), ".git"):
        monkeypatch.setenv("GIT_DIR", folder)
        monkeypatch.setenv("GIT_INDEX_FILE", f"{folder}/index")
        (repository / "sub").mkdir(exist_ok=True)
        assert (collect_source(repository / "sub"), collect_patch(repository / "sub")) == expected


def test_secrets_are_masked(repository: Path) -> None:
    (repository / "train.py").write_text('token = "hf_abcdefghijklmnopqrstuv"\npassword = "tr0ub4dor&3"\n')
    patch = collect_patch(repository)
    assert patch is not None

    assert patch.masked
    assert "hf_abc" not in patch.diff
    assert "tr0ub4dor" not in patch.diff


def test_large_files_are_known_by_digest(repository: Path) -> None:
    (repository / "weights.bin").write_bytes(bytes(1 << 19))
    (repository / "train.py").write_text("a = 2\n")
    patch = collect_patch(repository)
    assert patch is not None

    assert [name for name, _ in patch.left_out] == ["weights.bin"]
    assert len(patch.left_out[0][1]) == 64
    assert "a = 2" in patch.diff
    assert "weights" not in patch.diff


def test_a_deleted_file_is_part_of_the_patch(repository: Path, tmp_path: Path) -> None:
    (repository / "weights.bin").unlink()
    assert not (applied(repository, collect_patch(repository), tmp_path) / "weights.bin").exists()


def test_the_name_of_a_branch_is_no_change(repository: Path) -> None:
    """Whatever characters it has: some of them end a line for Python, and none for git."""
    git(repository, "checkout", "-q", "-b", "pasted\u2028from\x85the-web")
    facts = collect_source(repository)
    assert facts is not None
    assert (len(facts.commit), facts.changed) == (40, False)
    (repository / "train.py").write_text("a = 2\n")
    changed = collect_source(repository)
    assert changed is not None
    assert changed.changed
