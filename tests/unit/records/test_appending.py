"""Files that are appended to without a descriptor that is held."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from samebits.records import log
from samebits.records.log import AppendedFile, emptied

if TYPE_CHECKING:
    from pathlib import Path

WAYS = ["C", "Python"]


@pytest.fixture(params=WAYS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> AppendedFile:
    """A file with one piece in it, written by the C function or by its twin."""
    made = AppendedFile(tmp_path / "a")
    if request.param == "Python":
        made._append = log.append
    elif made._append is log.append:
        pytest.skip("the C module was not built")
    made.append(b"first ")
    return made


def refused(file: AppendedFile) -> OSError:
    with pytest.raises(OSError, match=r".") as caught:
        file.append(b"more")
    return caught.value


def test_pieces_stand_one_after_another(file: AppendedFile, tmp_path: Path) -> None:
    """And no descriptor is open in between."""
    before = os.listdir("/proc/self/fd")
    file.append(b"second")
    assert (tmp_path / "a").read_bytes() == b"first second"
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("written", [1, 0])
def test_an_interrupt_loses_nothing(file: AppendedFile, tmp_path: Path, written: int) -> None:
    """A signal handler may raise right before or after the call that writes."""
    append = file._append

    def interrupted(path: str, identity: log.Identity, data: bytes) -> int:
        if written:
            append(path, identity, data)
        raise KeyboardInterrupt

    file._append = interrupted
    with pytest.raises(KeyboardInterrupt):
        file.append(b"second ")
    file._append = append
    file.append(b"third")
    assert (tmp_path / "a").read_bytes() == b"first " + b"second " * written + b"third"


def test_an_interrupt_within_a_piece(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The part that was written is removed again."""
    file, write = AppendedFile(tmp_path / "a"), os.write
    file._append = log.append
    file.append(b"first ")

    def interrupted(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            file.append(b"second")
    file.append(b"third")
    assert (tmp_path / "a").read_bytes() == b"first third"


@pytest.mark.parametrize("contents", [b"", b"f", b"user's", b"first and much more"])
def test_a_file_in_its_place_is_left_alone(file: AppendedFile, tmp_path: Path, contents: bytes) -> None:
    """Also when the file system gives it the inode of the one that was removed."""
    place = tmp_path / "a"
    place.unlink()
    for name in ["a", *"bcdefgh"]:  # whichever gets the inode
        (tmp_path / name).write_bytes(contents)
    inode = file._inode
    reused = [path for path in tmp_path.iterdir() if path.stat().st_ino == inode]
    if reused:
        reused[0].replace(place)
    assert refused(file).errno == errno.ESTALE
    assert place.read_bytes() == contents


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "nothing"])
def test_what_is_no_file_is_left_alone(file: AppendedFile, tmp_path: Path, kind: str) -> None:
    """A pipe would block; what a link leads to is not ours."""
    place = tmp_path / "a"
    place.rename(tmp_path / "moved")
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to("moved")
    elif kind == "folder":
        place.mkdir()
    refused(file)
    assert (tmp_path / "moved").read_bytes() == b"first "


def test_emptying_refuses_what_is_no_file(tmp_path: Path) -> None:
    """A link or a device is not replaced."""
    (tmp_path / "target").write_text("user's")
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(OSError, match="a symbolic link"):
        emptied(str(tmp_path / "link"))
    emptied(str(tmp_path / "target")).append(b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
