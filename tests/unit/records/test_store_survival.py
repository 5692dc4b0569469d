"""Records stay readable: kills, forks, full disks, places that cannot be written."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from record_support import INFO, digest, listing, row, write

from samebits.errors import SamebitsError
from samebits.records import reader
from samebits.records.creation import finalize
from samebits.records.reader import RecordReader
from samebits.records.writer import RecordWriter

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

HERE = Path(__file__).parent
WRITE_FOREVER = """
import itertools, sys, time
from record_support import row, INFO
from samebits.records.writer import RecordWriter
writer = RecordWriter(sys.argv[1], INFO)
written = open(sys.argv[2], "w")
for seq in itertools.count():
    writer.add(row(writer, seq, op=f"op {seq % 5000}"))
    if seq % 100 == 0:
        written.seek(0); written.write(str(seq)); written.flush()
        time.sleep(float(sys.argv[3]))
"""
FORK_AND_EXIT = """
import gc, os, sys
from record_support import row, INFO
from samebits.records.writer import RecordWriter
writer = RecordWriter(sys.argv[1], INFO)
for seq in range(300):
    writer.add(row(writer, seq))
if os.fork() == 0:
    for seq in range(300, 1000):
        writer.add(row(writer, seq, op=f"child {seq}"))
    writer.flush()
    writer.update(steps=12345)
    writer.capture([(0, 0, b"child")])
    if sys.argv[2] == "close":
        writer.close()
    del writer
    gc.collect()
    sys.exit(0)  # not os._exit: everything is torn down
os.wait()
for seq in range(300, 400):
    writer.add(row(writer, seq))
if sys.argv[2] == "close":
    writer.close()
else:
    writer.flush()
    os.kill(os.getpid(), 9)
"""


def run(code: str, *arguments: object, **options: object) -> subprocess.Popen[bytes]:
    folders = [str(HERE), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, **options)  # type: ignore[call-overload]


def wait_for(written: Path, events: int = 0) -> None:
    """Wait until the writer has begun, or has written some events."""
    while not (written.exists() and int(written.read_text() or -1) >= events):
        time.sleep(0.01)


def read(path: Path) -> list[int]:
    """Return the numbers of the events; each must be exactly what was written."""
    with RecordReader(path) as reader:
        events = list(reader.events())
    assert all(event.digests == (digest(event.seq, 0), digest(event.seq, 1)) for event in events)
    return [event.seq for event in events]


@pytest.mark.parametrize("turn", range(12))
def test_sigkill_at_any_moment_loses_only_the_last_few_events(tmp_path: Path, turn: int) -> None:
    """All but the last 256 events, or those of the last 0.2 s, are there, in an unbroken sequence."""
    path, written = tmp_path / "a.sbr", tmp_path / "written"
    process = run(WRITE_FOREVER, path, written, 0.0 if turn % 2 else 0.005)
    wait_for(written)
    time.sleep(random.Random(turn).uniform(0, 0.6))
    process.kill()
    process.wait()

    seen = read(path)
    assert seen == list(range(len(seen)))
    assert len(seen) >= int(written.read_text()) - 256
    with RecordReader(path) as reader:
        assert (reader.info.status, reader.info.steps) == ("running", (len(seen) - 1) // 3 + 1)

    finalize(path, status="failed", exit_status=137)
    assert listing(tmp_path) == ["a.sbr", "written"]
    assert read(path) == seen
    with RecordReader(path) as reader:
        assert (reader.info.exit_status, reader.info.steps) == (137, (len(seen) - 1) // 3 + 1)


def test_events_reach_the_file_although_steps_are_slow(tmp_path: Path) -> None:
    """An event more than 0.2 s after the last commit is committed at once."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    time.sleep(0.25)
    writer.add(row(writer, 0))
    assert read(tmp_path / "a.sbr") == [0]
    writer.close()


def test_a_record_is_readable_while_it_is_written(tmp_path: Path) -> None:
    """A reader in another process sees whole events in order, and does not disturb the writer."""
    path, written = tmp_path / "a.sbr", tmp_path / "written"
    process = run(WRITE_FOREVER, path, written, 0.002)
    lengths = [0]
    try:
        wait_for(written)
        while len(set(lengths)) < 6:
            seen = read(path)
            assert seen == list(range(len(seen)))
            lengths.append(len(seen))
    finally:
        process.kill()
        process.wait()
    assert lengths == sorted(lengths)


def test_a_record_that_is_closed_while_it_is_read_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log may go between two looks."""
    writer = write(tmp_path / "a.sbr", 5, close=False)
    original = reader.rebuild

    def close_and_rebuild(connection: sqlite3.Connection, log: Path) -> bool:
        for seq in range(5, 600):
            writer.add(row(writer, seq))
        writer.close()
        return original(connection, log)

    monkeypatch.setattr(reader, "rebuild", close_and_rebuild)
    assert read(tmp_path / "a.sbr") == list(range(600))


@pytest.mark.parametrize("ending", ["close", "kill"])
def test_a_forked_child_never_touches_the_record(tmp_path: Path, ending: str) -> None:
    """Neither by writing, closing or exiting."""
    assert run(FORK_AND_EXIT, tmp_path / "a.sbr", ending).wait() in (0, -signal.SIGKILL)

    assert read(tmp_path / "a.sbr") == list(range(400))
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert reader.info.steps != 12345
        assert reader.captures(0) == {}
        assert not any(event.op.startswith("child") for event in reader.events())
    assert listing(tmp_path) == (["a.sbr"] if ending == "close" else ["a.sbr", "a.sbr-log"])


def test_a_child_forked_during_a_commit_does_not_hang(tmp_path: Path) -> None:
    """Its copy of the lock is taken for ever."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    writer.add(row(writer, 0))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with writer._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        writer.add(row(writer, 1, op="new"))
        writer.update(steps=3)
        writer.close()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    writer.close()
    assert status == 0


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """The files are the same before and after, with a log and without."""
    write(tmp_path / "closed.sbr", 500)
    writer = write(tmp_path / "open.sbr", 500, close=False)
    before = {name: (tmp_path / name).read_bytes() for name in listing(tmp_path)}

    for name in ("closed.sbr", "open.sbr"):
        assert read(tmp_path / name) == list(range(500))
        with RecordReader(tmp_path / name) as reader:
            reader.captures(3)
            reader.event(5)
            assert listing(tmp_path) == sorted(before)

    assert {name: (tmp_path / name).read_bytes() for name in listing(tmp_path)} == before
    writer.close()


def test_a_reader_leaves_no_copy_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy that a log makes necessary is removed on closing, and when the record is refused."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    writer = write(tmp_path / "a.sbr", 50, close=False)
    reader = RecordReader(tmp_path / "a.sbr")
    assert listing(tmp_path / "temporary")
    reader.close()
    assert listing(tmp_path / "temporary") == []

    for name in ("a.sbr", "a.sbr-log"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("a", "b", 1))
    content = bytearray((tmp_path / "b.sbr").read_bytes())
    content[100:] = os.urandom(len(content) - 100)
    (tmp_path / "b.sbr").write_bytes(content)
    (tmp_path / "b.sbr-log").write_bytes(b"x" * 100)
    with pytest.raises(SamebitsError):
        RecordReader(tmp_path / "b.sbr")
    assert listing(tmp_path / "temporary") == []
    writer.close()


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """Mount a small memory file system, which takes root and a kernel that allows it."""
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow to mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_ends_the_record_and_not_the_script(tmp_path: Path) -> None:
    """Earlier commits stay; the writer says why it stopped."""
    with mounted(tmp_path / "small", "600k"):
        path = tmp_path / "small/a.sbr"
        writer = RecordWriter(path, INFO)
        for seq in range(20_000):
            writer.add(row(writer, seq))
        writer.update(status="finished")
        writer.capture([(0, 0, b"x")])
        writer.close()
        assert "could not be written any further (No space left on device)" in writer.broken

        seen = read(path)
        assert len(seen) > 1000
        assert seen == list(range(len(seen)))
        copy = tmp_path / "copy.sbr"
        for name in listing(path.parent):
            shutil.copy(path.parent / name, copy.with_name(name.replace("a", "copy", 1)))
        assert read(copy) == seen


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    """One clear line, and no fragment of a record is left."""
    with mounted(tmp_path / "full", "16k"):
        with pytest.raises(SamebitsError, match=r"cannot write the record .*full.*: give a path") as caught:
            RecordWriter(tmp_path / "full/a.sbr", INFO)
        assert listing(tmp_path / "full") == []
    assert caught.value.slug == "record-unwritable"
    assert "\n" not in str(caught.value)


def test_a_file_system_that_cannot_be_written(tmp_path: Path) -> None:
    """Records there are read, with a log and without; making one is refused."""
    with mounted(tmp_path / "frozen", "4m"):
        write(tmp_path / "frozen/closed.sbr", 500)
        process = run(WRITE_FOREVER, tmp_path / "frozen/killed.sbr", tmp_path / "written", 0.005)
        wait_for(tmp_path / "written", 1000)
        process.kill()
        process.wait()
        frozen = ["mount", "-o", "remount,ro", str(tmp_path / "frozen")]
        subprocess.run(frozen, check=True)

        assert read(tmp_path / "frozen/closed.sbr") == list(range(500))
        assert len(read(tmp_path / "frozen/killed.sbr")) > 100
        with pytest.raises(SamebitsError, match=r"cannot write the record .* \(Read-only file system\): "):
            RecordWriter(tmp_path / "frozen/b.sbr", INFO)
        with pytest.raises(SamebitsError, match="cannot write the record ") as caught:
            finalize(tmp_path / "frozen/killed.sbr", status="failed")
        assert caught.value.slug == "record-unwritable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """One clear line."""
    write(tmp_path / "a.sbr")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(SamebitsError, match=r"\(Permission denied\): give a path"):
            RecordWriter(tmp_path / "b.sbr", INFO)
        assert read(tmp_path / "a.sbr")
    finally:
        tmp_path.chmod(0o700)


def test_places_where_no_record_can_be(tmp_path: Path) -> None:
    """A directory, a file as a directory, and a name that is too long are refused in one line each."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for name, expected in (
        ("folder", "it is a folder, expected a regular file"),
        ("no/a.sbr", "No such file"),
        ("file/a.sbr", "cannot write the record"),
        ("x" * 300, "File name too long"),
        ("nul\0.sbr", "cannot write the record"),
    ):
        with pytest.raises(SamebitsError, match=expected) as caught:
            RecordWriter(tmp_path / name, INFO, overwrite=True)
        assert "\n" not in str(caught.value)


def test_an_existing_file_is_kept_unless_asked_for(tmp_path: Path) -> None:
    """Only a record is ever overwritten, and only one that nobody writes."""
    path = tmp_path / "a.sbr"
    write(path, 30)
    before = path.read_bytes()
    with pytest.raises(SamebitsError, match="already exists: give another path") as caught:
        RecordWriter(path, INFO)
    assert (caught.value.slug, path.read_bytes()) == ("record-exists", before)

    RecordWriter(path, INFO, overwrite=True).close()
    assert read(path) == []

    (tmp_path / "train.py").write_text("import torch\n" * 50)
    with pytest.raises(SamebitsError, match=r"train.py is not a samebits record and was not overwritten"):
        RecordWriter(tmp_path / "train.py", INFO, overwrite=True)
    assert (tmp_path / "train.py").read_text() == "import torch\n" * 50


def test_a_record_that_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    """Two runs may be told the same path by mistake."""
    path = tmp_path / "a.sbr"
    process = run(WRITE_FOREVER, path, tmp_path / "written", 0.005)
    try:
        wait_for(tmp_path / "written", 1000)
        for attempt in (lambda: RecordWriter(path, INFO, overwrite=True), lambda: finalize(path, steps=1)):
            with pytest.raises(SamebitsError, match="is being written by another run: wait") as caught:
                attempt()
            assert caught.value.slug == "record-busy"
        time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    assert len(read(path)) > 100


def test_a_killed_record_is_overwritten_with_its_log(tmp_path: Path) -> None:
    """The old log must not be taken for the new record's."""
    path = tmp_path / "a.sbr"
    process = run(WRITE_FOREVER, path, tmp_path / "written", 0.0)
    wait_for(tmp_path / "written", 1000)
    process.kill()
    process.wait()
    shutil.copy(tmp_path / "a.sbr-log", tmp_path / "b.sbr-log")

    RecordWriter(path, INFO, overwrite=True).close()
    assert read(path) == []
    write(tmp_path / "b.sbr", 3)  # its predecessor was deleted, but not the log
    assert read(tmp_path / "b.sbr") == [0, 1, 2]


def test_the_script_may_remove_the_record_or_change_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither makes the writer raise."""
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    writer = RecordWriter("sub/a.sbr", INFO)
    monkeypatch.chdir("/")
    writer.add(row(writer, 0))
    writer.close()
    assert read(tmp_path / "sub/a.sbr") == [0]

    (tmp_path / "gone").mkdir()
    writer = RecordWriter(tmp_path / "gone/a.sbr", INFO)
    shutil.rmtree(tmp_path / "gone")
    for seq in range(3000):
        writer.add(row(writer, seq))
    writer.close()
    assert not (tmp_path / "gone").exists()
