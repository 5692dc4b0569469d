"""Which files a report may quote: a record may name any."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from samebits._runtime.frames import Site
from samebits.report.remedy import CHANGED_SINCE, Sources, quotation, source_line
from samebits.report.style import Style

LINE = "loss.backward()"


@pytest.fixture
def project(tmp_path):
    """The working folder, and a place outside of it; the same line in each file."""
    for name in ("project", "elsewhere", "project/.hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(f"import torch\n    {LINE}\n")
    return tmp_path / "project"


def line(path: object, project: Path, number: int = 2, *, own: bool = False) -> str:
    return source_line(Site(str(path), number, "main"), Sources(str(project), own=own))


def test_python_source_below_the_working_folder_is_quoted(project):
    assert line(project / "train.py", project) == LINE


def test_what_lies_elsewhere_is_quoted_for_own_runs_only(project):
    path = project.parent / "elsewhere" / "train.py"
    assert line(path, project) == ""
    assert line(path, project, own=True) == LINE


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "/proc/self/environ", "/proc/self/mem", "/dev/zero", "/dev/tty"]
)
def test_files_of_the_system_are_not_quoted(project, name):
    """Also when the command was started in the root folder."""
    for folder in (project, Path("/")):
        assert line(name, folder, 1) == ""


@pytest.mark.parametrize("name", [".env", "id_rsa", "settings.json", ".hidden/train.py", "notes.txt"])
def test_secrets_below_the_working_folder_are_not_quoted(project, name):
    """A home folder may be the working folder."""
    (project / name).write_text("TOKEN=precious\nTOKEN=precious\n")
    assert line(project / name, project) == ""


def test_links_out_of_the_folder_are_not_followed(project):
    (project / "link.py").symlink_to(project.parent / "elsewhere" / "train.py")
    (project / "folder").symlink_to(project.parent / "elsewhere")
    (project / "loop.py").symlink_to(project / "loop.py")
    for name in ("link.py", "folder/train.py", "loop.py", "../elsewhere/train.py"):
        assert line(project / name, project) == ""


@pytest.mark.parametrize("own", [False, True])
def test_what_is_no_regular_file_is_not_opened(project, own):
    os.mkfifo(project / "fifo.py")
    (project / "folder.py").mkdir()
    (project / "zero.py").symlink_to("/dev/zero")
    for name in ("fifo.py", "folder.py", "zero.py"):
        assert line(project / name, project, own=own) == ""


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    "name",
    ["", "a\0b.py", "/a\0b.py", "\ud800.py", "/" + "x" * 5000 + ".py", "<string>", "train.py", "~/train.py"],
)
def test_names_of_no_file(project, name, own):
    """Relative names are not searched for: `linecache` does so along `sys.path`."""
    assert line(name, project, own=own) == ""


@pytest.mark.parametrize("number", [0, -1, 3, 2**31, 2**63 - 1, -(2**63)])
def test_lines_that_are_not_there(project, number):
    assert line(project / "train.py", project, number) == ""


def test_large_files_and_long_lines_are_cut(project):
    """A sparse file of many gigabytes, and a line of megabytes."""
    with (project / "sparse.py").open("wb") as file:
        file.write(b"x = 1\n")
        file.truncate(1 << 36)
    assert line(project / "sparse.py", project, 1) == "x = 1"
    assert len(line(project / "sparse.py", project, 2)) <= 4 * 2_000
    (project / "long.py").write_text("x" * 3_000_000)
    assert len(line(project / "long.py", project, 1)) == 2_000


def test_other_encodings(project):
    (project / "latin.py").write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    (project / "wrong.py").write_bytes(b"# coding: no-such\nx = 1\n")
    (project / "bytes.py").write_bytes(b"# a\nx = '\xff\x1b[2J'\n")
    assert line(project / "latin.py", project) == "x = 'é'"
    assert line(project / "wrong.py", project) == ""
    assert line(project / "bytes.py", project).isprintable()


def test_a_form_feed_ends_no_line(project):
    """Python counts lines by line ends only."""
    (project / "feed.py").write_text(f"a = 1\x0cb = 2\n{LINE}\n")
    assert line(project / "feed.py", project) == LINE


def test_a_line_of_a_file_that_has_changed_since_the_run_is_not_quoted(project):
    """It may be another line now; each run is asked for its own contents."""
    path = project / "train.py"
    now, before = hashlib.sha256(path.read_bytes()).hexdigest(), "0" * 64
    site = Site(str(path), 2, "main")
    for code, shown in (
        (({"train.py": now}, {"train.py": before}), (LINE, "")),
        (({"train.py": before}, {"train.py": now}), ("", LINE)),
        (({"other": before}, {}), (LINE, LINE)),
        ((), (LINE, LINE)),
    ):
        sources = Sources(str(project), code=code)
        assert tuple(source_line(site, sources, of_second=second) for second in (False, True)) == shown
    changed = Sources(str(project), code=({"train.py": before}, {"train.py": now}))
    assert quotation(site, changed, Style()) == [f"    {CHANGED_SINCE}"]
    assert quotation(site, changed, Style(), of_second=True) == [f"    > {LINE}"]


def test_a_file_that_samebits_changed_is_quoted_as_the_runs_had_it(project):
    path = project / "train.py"
    contents = f"import torch\n{LINE}  # before\n".encode()
    code = ({"train.py": hashlib.sha256(contents).hexdigest()},)
    sources = Sources(str(project), own=True, replaced={str(path): contents}, code=code)
    assert source_line(Site(str(path), 2, "main"), sources) == f"{LINE}  # before"
