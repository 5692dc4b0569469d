"""What runs read from standard input: the same each time."""

from __future__ import annotations

import contextlib
import errno
import os
import threading

import pytest

from samebits.verification.isolation import StandardInput


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
