"""How much of the machine programs use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from samebits.environment import usage
from samebits.environment.usage import available_bytes, largest_child_bytes, processors, read_usage

BUSY = "import time\nwhile time.process_time() < 0.5: pass"


def test_a_child_that_has_ended_is_counted():
    before = read_usage()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    after = read_usage()
    assert after.own - before.own >= 0.5
    assert after.whole - before.whole >= 0.4  # the system counts in hundredths, and lags


def test_only_processors_that_may_be_used_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2})
    monkeypatch.setattr(os, "sysconf", lambda _: 100)
    lines = ["cpu  9 9 9 9 9 9 9 9 9 9", *(f"cpu{n} 100 10 20 7000 300 1 2 3 50 60" for n in range(3))]
    (tmp_path / "stat").write_text("\n".join([*lines, "intr 5 5"]) + "\n")
    assert read_usage(tmp_path).whole == pytest.approx(2 * 1.36)


@pytest.mark.parametrize("text", ["", "cpu0 1 2 x 4 5 6 7 8\n", "cpu9 1 2 3 4 5 6 7 8\n"])
def test_nothing_is_said_where_the_system_does_not_tell(tmp_path, monkeypatch, text):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    (tmp_path / "stat").write_text(text)
    assert read_usage(tmp_path) is None
    assert read_usage(tmp_path / "nowhere") is None


@pytest.mark.parametrize(("quota", "expected"), [(None, 3), (1.5, 1.5), (8.0, 3)])
def test_a_limit_of_the_control_group_counts(monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(usage, "read_quota", lambda: quota)
    assert processors() == expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("max", 2_097_152), ("3000000", 2_000_000), ("1500000", 500_000), ("", 2_097_152)],
)
def test_memory_that_can_still_be_had(tmp_path, limit, expected):
    (tmp_path / "meminfo").write_text("MemTotal:  9999 kB\nMemAvailable:   2048 kB\n")
    if limit:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text("1000000\n")
    assert available_bytes(tmp_path, tmp_path) == expected


def test_no_memory_is_known_where_the_system_does_not_tell(tmp_path):
    assert available_bytes(tmp_path, tmp_path) is None


def test_the_largest_child_is_known():
    subprocess.run([sys.executable, "-c", "x = bytearray(80_000_000)"], check=True)
    assert largest_child_bytes() >= 80_000_000
