"""Where a file may be written: only regular files are, and a name is never followed to another place."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from samebits._text import files


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path may be short only
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _link(path: Path) -> None:
    (path.parent / "victim").write_bytes(b"precious")
    path.symlink_to(path.parent / "victim")


def _dangling(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def _loop(path: Path) -> None:
    path.symlink_to(path)


IRREGULAR = {
    "a FIFO": _fifo,
    "a folder": _folder,
    "a socket": _socket,
    "a symbolic link": _link,
    "a symbolic link to nothing": _dangling,
    "a symbolic link to itself": _loop,
}
WRITERS = {
    "open_to_write": lambda path: files.open_to_write(path).close(),
    "open_text_to_write": lambda path: files.open_text_to_write(path).close(),
    "write_whole": lambda path: files.write_whole(path, b"new"),
    "put_in_place": lambda path: files.put_in_place(str(path.parent / "made"), path),
    "create": lambda path: os.close(files.create(path)),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", IRREGULAR)
def test_what_is_no_regular_file_is_not_written(tmp_path, kind, writer):
    """It stays what it is, nothing waits, and no file appears or changes."""
    path = tmp_path / "target"
    IRREGULAR[kind](path)
    (tmp_path / "made").write_bytes(b"new")
    before = path.lstat()
    names = sorted(os.listdir(tmp_path))

    with pytest.raises(OSError, match=r"expected a regular file|File exists") as caught:
        WRITERS[writer](path)

    assert caught.value.strerror
    if writer != "create":
        assert caught.value.strerror == f"it is {kind.partition(' to ')[0]}, expected a regular file"
    now = path.lstat()
    assert (now.st_mode, now.st_ino, now.st_mtime_ns) == (before.st_mode, before.st_ino, before.st_mtime_ns)
    assert sorted(os.listdir(tmp_path)) == names
    if "victim" in names:
        assert (tmp_path / "victim").read_bytes() == b"precious"


@pytest.mark.parametrize("kind", ["a FIFO", "a folder", "a socket"])
def test_what_is_no_regular_file_is_not_read(tmp_path, kind):
    """A reader does not wait for a writer that never comes."""
    path = tmp_path / "target"
    IRREGULAR[kind](path)
    with pytest.raises(OSError, match=r"expected a regular file"):
        files.open_to_read(path)


def test_a_link_to_a_file_is_read(tmp_path):
    _link(tmp_path / "target")
    with files.open_to_read(tmp_path / "target") as file:
        assert file.read() == b"precious"


def test_devices_are_neither_read_nor_written():
    for writer in ("open_to_write", "write_whole"):
        with pytest.raises(OSError, match=r"it is a device"):
            WRITERS[writer](Path("/dev/null"))
    with pytest.raises(OSError, match=r"it is a device"):
        files.open_to_read("/dev/zero")


def test_a_link_that_appears_after_the_check_is_not_followed(tmp_path, monkeypatch):
    """Between the look and the opening another process may have put one there."""
    path = tmp_path / "target"
    _link(path)
    monkeypatch.setattr(files, "refuse_irregular", lambda _: True)
    with pytest.raises(OSError):
        files.open_to_write(path)
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_regular_files_are_replaced_whole(tmp_path):
    path = tmp_path / "target"
    files.write_whole(path, b"first")
    files.write_whole(path, b"second")
    with files.open_to_write(path) as file:
        file.write(b"3")
    assert path.read_bytes() == b"3"
    assert os.listdir(tmp_path) == ["target"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "target"
    files.write_whole(path, b"first")
    with pytest.raises(TypeError):
        files.write_whole(path, "text")  # type: ignore[arg-type]
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["target"]


def test_two_writers_do_not_share_a_temporary_file(tmp_path):
    path = tmp_path / "target"
    contents = [bytes([number]) * 200_000 for number in range(8)]
    threads = [threading.Thread(target=files.write_whole, args=(path, data)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["target"]
