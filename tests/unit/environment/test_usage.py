"""How much of the machine programs use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from samebits.environment import resources
from samebits.environment.resources import available_bytes, free_processors, largest_child_bytes, read_usage

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


@pytest.mark.parametrize(
    ("others", "quota", "expected"),
    [(0, None, 3), (1.0, None, 2), (5.0, None, 0), (0, 1.5, 1.5), (0, 8.0, 3), (2.5, 1.5, 0.5)],
)
def test_processors_that_are_free(monkeypatch, others, quota, expected):
    """By the affinity, and what other programs leave; no more than the limit of the control group."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(resources, "read_quota", lambda: quota)
    assert free_processors(others) == expected


def machine(folder, groups: dict[str, dict[str, object]], own: str):
    """A machine with 2 MB to be had, and control groups with some files."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text("MemTotal:  9999 kB\nMemAvailable:   2048 kB\n")
    (folder / "proc" / "self" / "cgroup").write_text(f"{own}\n")
    for place, files in groups.items():
        (folder / "groups" / place).mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (folder / "groups" / place / name).write_text(f"{value}\n")
    return folder / "proc", folder / "groups"


UNLIMITED = {"memory.max": "max", "memory.current": 1000}
HALF = {"memory.max": 1_500_000, "memory.current": 1_000_000}


@pytest.mark.parametrize(
    ("own", "groups", "expected"),
    [
        ("0::/", {}, 2_097_152),
        ("0::/", {".": UNLIMITED}, 2_097_152),
        ("0::/", {".": {"memory.max": 9_000_000, "memory.current": 1}}, 2_097_152),
        ("0::/", {".": HALF}, 500_000),
        ("0::/a/b", {"a": HALF, "a/b": UNLIMITED}, 500_000),
        ("0::/", {".": {**HALF, "memory.stat": "anon 5\ninactive_file 300000"}}, 800_000),
        (
            "4:memory:/job",
            {"memory/job": {"memory.limit_in_bytes": 1_000_000, "memory.usage_in_bytes": 400_000}},
            600_000,
        ),
        ("4:cpu:/job", {"memory/job": {"memory.limit_in_bytes": 1, "memory.usage_in_bytes": 0}}, 2_097_152),
    ],
)
def test_memory_that_can_still_be_had(tmp_path, own, groups, expected):
    """What the machine has, and what the limits of containers and jobs leave."""
    assert available_bytes(*machine(tmp_path, groups, own)) == expected


def test_no_memory_is_known_where_the_system_does_not_tell(tmp_path):
    assert available_bytes(tmp_path, tmp_path) is None


def test_the_largest_child_is_known():
    subprocess.run([sys.executable, "-c", "x = bytearray(80_000_000)"], check=True)
    assert largest_child_bytes() >= 80_000_000
