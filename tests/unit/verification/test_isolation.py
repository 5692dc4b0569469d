"""Each run gets a fresh copy of the working folder, and the same standard input."""

from __future__ import annotations

import contextlib
import errno
import os
import threading

import pytest

from samebits.errors import SamebitsError
from samebits.verification.isolation import StandardInput, WorkingFolder


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


@pytest.fixture
def pipe():
    """Both ends of a pipe."""
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        with contextlib.suppress(OSError):  # the test has closed it
            os.close(end)


def read_all(source: StandardInput, size: int = -1) -> bytes:
    """What one run reads."""
    with source.for_run() as descriptor, open(descriptor, "rb", closefd=False) as stream:
        return stream.read(size)


def test_each_run_reads_the_same(pipe):
    reading, writing = pipe
    os.write(writing, b"two\nlines\n")
    os.close(writing)
    source = StandardInput(reading)
    assert [read_all(source) for _ in range(3)] == [b"two\nlines\n"] * 3


def test_a_run_that_reads_little_leaves_all_to_the_next(pipe):
    reading, writing = pipe
    data = bytes(range(256)) * 1000
    thread = threading.Thread(target=lambda: (os.write(writing, data), os.close(writing)))
    thread.start()
    source = StandardInput(reading)
    assert read_all(source, 10) == data[:10]
    assert read_all(source) == data
    thread.join()


def test_a_file_is_wound_back(tmp_path):
    path = tmp_path / "in"
    path.write_bytes(b"skipped rest")
    with open(path, "rb", buffering=0) as file:
        file.read(8)
        source = StandardInput(file.fileno())
        for _ in range(2):
            with source.for_run() as descriptor:
                assert descriptor is None
                assert file.read() == b"rest"


def test_a_run_is_not_left_waiting_when_input_cannot_be_kept(pipe):
    """The disk is full: this run still reads what there is, and none waits for ever."""
    reading, writing = pipe
    os.write(writing, b"some")
    os.close(writing)
    source = StandardInput(reading)

    class Full:
        def seek(self, _):
            return 0

        def read(self, _):
            return b""

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    source._saved.close()
    source._saved = Full()
    with pytest.raises(OSError, match="No space left"):
        read_all(source)


def test_a_pipe_is_read_by_one_at_a_time():
    reading, writing = os.pipe()
    try:
        assert not StandardInput(reading).can_be_shared()
    finally:
        os.close(reading)
        os.close(writing)


def test_a_file_can_be_had_by_two_until_a_run_reads_it(tmp_path):
    (tmp_path / "input").write_text("first second")
    with open(tmp_path / "input", "rb", buffering=0) as file:
        file.read(6)
        stdin = StandardInput(file.fileno())
        assert stdin.can_be_shared()
        with stdin.for_run():
            file.read(1)
        assert not stdin.can_be_shared()


def test_where_there_is_nothing_to_read_two_can_have_it():
    with open(os.devnull, "rb") as file:
        assert StandardInput(file.fileno()).can_be_shared()
    closed = os.open(os.devnull, os.O_RDONLY)
    os.close(closed)
    assert StandardInput(closed).can_be_shared()
