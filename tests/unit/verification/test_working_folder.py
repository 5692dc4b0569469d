"""Copies of the working folder."""

from __future__ import annotations

import pytest

from samebits.errors import SamebitsError
from samebits.verification.isolation import WorkingFolder


@pytest.fixture
def source(tmp_path):
    """A folder with what belongs to a run, and what does not."""
    folder = tmp_path / "work"
    for name in ("train.py", "data/big.bin", ".git/config", "venv/pyvenv.cfg", "venv/lib/x.py", "out/a.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "link").symlink_to("../elsewhere")
    (folder / "latest").symlink_to("out/a.txt")
    (tmp_path / "elsewhere").write_text("outside")
    return folder


def test_what_is_copied(source):
    """No version control, no virtual environments; links lead where they led; what is shared is a link."""
    copy = WorkingFolder(source, source / ".samebits" / "folder", ["data"], 1 << 20)

    copy.check()
    copy.renew()

    place = copy.path
    assert sorted(path.name for path in place.iterdir()) == ["data", "latest", "link", "out", "train.py"]
    assert (place / "data").is_symlink()
    assert (place / "link").read_text() == "outside"
    assert copy.copied(str(source / "train.py")) == str(place / "train.py")
    assert (place / "latest").resolve() == (place / "out" / "a.txt").resolve()
    assert copy.copied("train.py") == "train.py"
    assert copy.copied("../elsewhere") == str(source.parent / "elsewhere")
    assert copy.original(str(place / "out" / "a.txt")) == str(source / "out" / "a.txt")


def test_a_copy_is_fresh_each_time(source):
    """What a run wrote is gone; what was shared is still there when the copy is removed."""
    copy = WorkingFolder(source, source / ".samebits" / "folder", ["data"], 1 << 20)
    copy.renew()
    (copy.path / "out" / "b.txt").write_text("written")
    assert "out/b.txt" in copy.listed()

    copy.renew()

    assert "out/b.txt" not in copy.listed()
    copy.remove()
    assert (source / "data" / "big.bin").read_text() == "data/big.bin"
    assert not copy.path.exists()


def test_read_only_folders(source):
    """The copy of one can be removed (root may anyway); what a link leads to stays read-only."""
    (source / "data").chmod(0o555)
    (source / "out").chmod(0o555)
    copy = WorkingFolder(source, source / ".samebits" / "folder", ["data"], 1 << 20)

    copy.renew()
    assert (copy.path / "out").stat().st_mode & 0o777 == 0o555
    copy.renew()
    copy.remove()

    assert not copy.path.exists()
    assert [(source / name).stat().st_mode & 0o777 for name in ("data", "out")] == [0o555, 0o555]


def test_refusals(source):
    """Too large, with the largest named; a shared path that is not there."""
    (source / "data" / "big.bin").write_bytes(bytes(5000))
    with pytest.raises(SamebitsError, match="--share data") as error:
        WorkingFolder(source, source / "copy", [], 4000).check()
    assert error.value.slug == "resume-folder-large"
    WorkingFolder(source, source / "copy", ["data"], 4000).check()
    for path in ("nothing", "..", ".", "/"):
        with pytest.raises(SamebitsError, match="expected a file or folder"):
            WorkingFolder(source, source / "copy", [path], 4000)
