"""A rebuilt folder holds what a record says, and nothing that a stranger's record could smuggle in."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from samebits.commands.commit_files import write_files
from samebits.commands.rebuild import rebuild
from samebits.errors import SamebitsError
from samebits.records.events import RunInfo
from samebits.records.kinds import Level
from samebits.report.rebuilt import render_text
from samebits.report.style import Style

if TYPE_CHECKING:
    from pathlib import Path

FACTS: dict[str, Any] = {
    "python": {"version": "3.11.7", "hash_seed": "7"},
    "torch": {"threads": {"intra-op": 4}},
    "variables": {
        "MKL_CBWR": "AVX2",
        "TORCH_HOME": "/home/a",
        "OMP_PROC_BIND": "true",
        "X_TOKEN": "(hidden)",
    },
    "distributions": {
        "numpy": {"version": "2.1.0", "contents": "a" * 32, "imported": True},
        "torch": {"version": "2.13.0+cpu", "contents": "b" * 32, "imported": True},
        "pip": {"version": "25.0", "contents": "c" * 32, "imported": False},
        "own": {"version": "0.1", "contents": "", "imported": True},
    },
    "data": {"files": {"data.csv": {"sha256": "d" * 64, "size": 3}}},
}


def rebuilt(tmp_path: Path, facts: dict[str, Any]) -> Path:
    said(tmp_path, facts)
    return tmp_path / "again"


def said(tmp_path: Path, facts: dict[str, Any]) -> str:
    """Rebuild into the folder `again`, and return the report as one line."""
    record = tmp_path / "a.sbr"
    record.write_bytes(b"record")
    info = RunInfo(("train.py",), Level.STEP, "finished", environment=facts)
    text = render_text(rebuild(record, info, tmp_path / "again", tmp_path), Style(width=80))
    assert "\x1b" not in text
    return " ".join(text.split())


def test_packages_variables_and_command_are_those_of_the_run(tmp_path: Path) -> None:
    folder = rebuilt(tmp_path, FACTS)

    assert (folder / "requirements.txt").read_text().splitlines() == [
        "# Python 3.11.7", "--extra-index-url https://download.pytorch.org/whl/cpu",
        "numpy==2.1.0", "torch==2.13.0+cpu",
    ]  # fmt: skip
    assert "pip==25.0" in (folder / "constraints.txt").read_text()
    assert (folder / "environment.sh").read_text().splitlines() == [
        "export MKL_CBWR=AVX2", "export OMP_NUM_THREADS=4", "export PYTHONHASHSEED=7",
        "# X_TOKEN: not whole in the record",
    ]  # fmt: skip
    assert (folder / "golden.sbr").read_bytes() == b"record"
    assert "FROM python:3.11.7-slim" in (folder / "Dockerfile").read_text()
    assert all((folder / name).stat().st_mode & 0o111 for name in ("run.sh", "install.sh"))
    assert (folder / ".dockerignore").read_text() == "venv\n"  # as run.sh makes it


@pytest.mark.parametrize(
    "change",
    [
        {"python": {"version": "3.11; touch PWNED", "hash_seed": "$(touch PWNED)"}},
        {"python": None, "torch": [], "variables": "x", "data": 5, "patch": [], "source": 7, "code": "y"},
        {"variables": {"A;touch PWNED;": "1", "MKL_X": "$(touch PWNED)`touch PWNED`'; touch PWNED #"}},
        {"torch": {"threads": {"intra-op": "1\ntouch PWNED"}}},
        {"patch": {"folder": "../../..", "diff": 5, "left_out": [[], 7, ["a\x1b[31m", ""]], "masked": "x"}},
        {"patch": {"folder": "$(touch PWNED)", "diff": ""}},
        {"source": {"commit": "--output=PWNED"}},
        {
            "distributions": {
                "numpy": {"version": "1\n--index-url http://x", "contents": "a", "imported": True}
            }
        },
        {
            "distributions": {
                "--index-url http://x": {"version": "1", "contents": "a", "imported": True},
                "y": 5,
            }
        },
    ],
)
def test_a_strangers_record_adds_no_commands(tmp_path: Path, change: dict[str, Any]) -> None:
    """The programs are read by a shell here, up to where they would install packages."""
    folder = rebuilt(tmp_path, {**FACTS, **change})
    for name in ("run.sh", "install.sh", "environment.sh"):
        subprocess.run(["sh", "-n", str(folder / name)], check=True)
    subprocess.run(["sh", "-c", ". ./environment.sh"], cwd=folder, check=True)
    (folder / "venv/bin").mkdir(parents=True)
    (folder / "venv/bin/samebits").write_text("#!/bin/sh\nexit 0\n")
    (folder / "venv/bin/samebits").chmod(0o755)
    subprocess.run([str(folder / "run.sh")], cwd=folder, check=False, capture_output=True)

    assert not list(tmp_path.rglob("PWNED"))
    for name in ("requirements.txt", "constraints.txt"):
        assert "index-url http:" not in (folder / name).read_text()
    assert "PWNED" not in (folder / "Dockerfile").read_text()


def test_packages_that_will_be_others_are_told(tmp_path: Path) -> None:
    origins = {
        "a": {"kind": "conda"},
        "b": {"kind": "editable", "at": "~/src/b"},
        "c": {"kind": "archive", "at": "c-1.0-cp311-cp311-linux_x86_64.whl"},
        "d": {"kind": "repository", "at": "git+https://***@example.org/d", "commit": "0" * 40},
    }
    rows = {
        name: {"version": "1.0", "imported": True, "contents": "e" * 32, "origin": origin}
        for name, origin in origins.items()
    }
    rows["torch"] = {"version": "2.6.0a0+own", "imported": True, "contents": "e" * 32, "edited": ["a.py 0"]}
    text = said(tmp_path, {**FACTS, "distributions": rows})
    for part in (
        "missing: the conda builds of a 1.0. pip installs",
        "missing: b 1.0 (~/src/b), from a folder that is not in the code of the commit",
        "missing: the file of c 1.0 (c-1.0-cp311-cp311-linux_x86_64.whl)",
        "missing: the pinned address of d 1.0 (git+https://***@example.org/d); requirements.txt",
        "missing: the build of torch 2.6.0a0+own. No index has it",
        "missing: the edits of torch 2.6.0a0+own, whose files",
    ):
        assert part in text, text


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    (tmp_path / "again/mine.txt").write_text("mine")
    with pytest.raises(SamebitsError, match="is not empty"):
        rebuilt(tmp_path, FACTS)
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["mine.txt"]


def test_a_record_without_packages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SamebitsError, match="does not hold what is needed"):
        rebuilt(tmp_path, {})


def committed(folder: Path) -> str:
    """Commit everything in a new repository; return the commit."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "one")):
        subprocess.run(["git", "-C", folder, *words], check=True, stdout=subprocess.DEVNULL)
    head = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("is_bare", [False, True])
def test_files_that_releases_leave_out_are_part_of_the_code(tmp_path: Path, is_bare: bool) -> None:  # noqa: FBT001
    """The attribute `export-ignore` is for archives; configurations and tests often have it."""
    (tmp_path / "train.py").write_text("a = 1\n")
    (tmp_path / "config.py").write_text("b = 1\n")
    (tmp_path / ".gitattributes").write_text("config.py export-ignore\n")
    commit = committed(tmp_path)
    repository = tmp_path / "bare"
    subprocess.run(["git", "clone", "-q", "--bare", tmp_path, repository], check=True)
    into = tmp_path / "into"
    into.mkdir()

    assert write_files(repository if is_bare else tmp_path, commit, into, 60)

    assert (into / "config.py").read_text() == "b = 1\n"
    assert not write_files(tmp_path, "0" * 40, into, 60)


def test_data_that_the_code_brings_is_not_asked_for(tmp_path: Path) -> None:
    """Nothing outside of the rebuilt code counts, whatever a record names."""
    (tmp_path / "sub").mkdir()
    for name in ("sub/same.csv", "sub/other.csv"):
        (tmp_path / name).write_text("1\n")
    commit = committed(tmp_path)
    (tmp_path / "outside.csv").write_text("1\n")
    one = hashlib.sha256(b"1\n").hexdigest()
    names = {
        "same.csv": one, "other.csv": "d" * 64, "gone.csv": one, "../sub": one, "a\0b": one,
        str(tmp_path / "outside.csv"): one, "../../../outside.csv": one,
    }  # fmt: skip
    data = {"files": {name: {"sha256": digest} for name, digest in names.items()}}
    facts = {**FACTS, "source": {"commit": commit}, "patch": {"folder": "sub"}, "data": data}
    record = tmp_path / "a.sbr"
    record.write_bytes(b"record")
    info = RunInfo(("train.py",), Level.STEP, "finished", environment=facts)

    made = rebuild(record, info, tmp_path / "again", tmp_path)

    assert [name for name, _ in made.data] == [name for name in names if name != "same.csv"]


def test_data_of_the_code_are_found_by_an_absolute_name_and_as_a_whole_folder(tmp_path: Path) -> None:
    """Data above the working folder have the name of the other machine; of many files the folder is named."""
    (tmp_path / "exp").mkdir()
    (tmp_path / "many").mkdir()
    for number in range(3):
        (tmp_path / f"many/{number}.csv").write_text(f"{number}\n")
    commit = committed(tmp_path)
    lines = [(f"../many/{n}.csv", hashlib.sha256(f"{n}\n".encode()).hexdigest()) for n in range(3)]
    together = hashlib.sha256("".join(f"{name}\0{digest}\n" for name, digest in lines).encode()).hexdigest()
    files = {
        "/home/other/project/many/1.csv": {"sha256": lines[1][1]},
        "~/many/2.csv": {"sha256": lines[2][1]},
        "../many/": {"sha256": together, "count": 3},
        "/home/other/many/9.csv": {"sha256": lines[1][1]},
    }
    facts = {**FACTS, "source": {"commit": commit}, "patch": {"folder": "exp"}, "data": {"files": files}}
    record = tmp_path / "a.sbr"
    record.write_bytes(b"record")
    info = RunInfo(("train.py",), Level.STEP, "finished", environment=facts)
    made = rebuild(record, info, tmp_path / "again", tmp_path)
    assert [name for name, _ in made.data] == ["/home/other/many/9.csv"]


def test_a_run_whose_arguments_are_masked_is_rebuilt_and_they_are_asked_for(tmp_path: Path) -> None:
    record = tmp_path / "a.sbr"
    record.write_bytes(b"record")
    info = RunInfo(("train.py", "--token", "***"), Level.STEP, "finished", environment=FACTS)
    text = render_text(rebuild(record, info, tmp_path / "again", tmp_path), Style(width=400))
    assert "missing: arguments of the script, which are masked; give all: " in text
    assert "/again/run.sh -- ARGUMENTS" in text


def test_a_patch_that_does_not_apply_leaves_the_code_as_it_was_committed(tmp_path: Path) -> None:
    """A secret that is masked in a line beside the change is one reason."""
    (tmp_path / "train.py").write_text("a = 1\n")
    commit = committed(tmp_path)
    diff = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-b = 1\n+b = 2\n"
    facts = {**FACTS, "source": {"commit": commit}, "patch": {"diff": diff}}

    text = said(tmp_path, facts)

    assert (tmp_path / "again/code/train.py").read_text() == "a = 1\n"
    assert "missing: the changes since the commit. `git apply` does not accept changes.patch" in text
    assert "not in this repository" not in text


def test_a_run_in_no_repository_needs_no_clone(tmp_path: Path) -> None:
    assert "missing: the code. The record names no commit" in said(tmp_path, FACTS)


def test_a_path_of_the_other_machine_is_named(tmp_path: Path) -> None:
    """The command is run as it was; a script below the code would have to be named from there."""
    (tmp_path / "a.sbr").write_bytes(b"")
    info = RunInfo(("/home/me/train.py", "--data", "images"), Level.STEP, "finished", environment=FACTS)
    made = rebuild(tmp_path / "a.sbr", info, tmp_path / "again", tmp_path)

    assert made.absolute == ("/home/me/train.py",)
    assert "missing: what was at /home/me/train.py when the run was made" in render_text(
        made, Style(width=200)
    )


@pytest.mark.parametrize("value", ["(hidden)", "https://a:***@host/x", "x" * 300])
def test_a_variable_whose_value_is_not_whole_is_named_and_not_set(tmp_path: Path, value: str) -> None:
    facts = {**FACTS, "variables": {"MKL_CBWR": "AVX2", "TORCH_EXTRA": value}}
    text = said(tmp_path, facts)
    lines = (tmp_path / "again/environment.sh").read_text().splitlines()

    assert "missing: the values of TORCH_EXTRA, which the record does not hold whole" in text
    assert "# TORCH_EXTRA: not whole in the record" in lines
    assert "export MKL_CBWR=AVX2" in lines
    assert not any(line.startswith("export TORCH_EXTRA") for line in lines)


def test_a_name_cannot_send_escapes_or_begin_a_line(tmp_path: Path) -> None:
    """The folder's, a data file's and a changed file's."""
    record = tmp_path / "a.sbr"
    record.write_bytes(b"record")
    bad = "x\x1b[31m\nmissing: y"
    facts = {**FACTS, "data": {"files": {bad: {"sha256": "d" * 64}}}, "patch": {"left_out": [[bad, ""]]}}
    info = RunInfo(("train.py",), Level.STEP, "finished", environment=facts)
    text = render_text(rebuild(record, info, tmp_path / bad, tmp_path), Style(width=400))

    assert "\x1b" not in text
    assert not any(line.startswith("missing: y") for line in text.splitlines())
