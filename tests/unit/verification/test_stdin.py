"""Whether two runs can have the same standard input at the same time."""

from __future__ import annotations

import os

from samebits.verification.stdin import StandardInput


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
