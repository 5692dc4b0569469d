"""`samebits cost` on real scripts."""

from __future__ import annotations

import json

from cli_support import SEEDED, complaints, samebits, write

BY_HAND = """
    import torch
    weight = torch.zeros(4, requires_grad=True)
    for step in range(100):
        (weight * torch.ones(4)).sum().backward()
"""


def test_each_switch_is_timed_beside_off(tmp_path):
    """Off, off again, everything on, and each switch that changes something here."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=100)
    done = samebits("cost", "--json", "--steps", 5, "--rounds", 2, script, cwd=tmp_path)
    report = json.loads(done.stdout)
    rows = {row["name"]: row for row in report["costs"]}

    assert list(rows)[:3] == ["off", "off again", "on"]
    assert {"deterministic-algorithms", "fill-uninitialized"} <= set(rows)
    assert rows["fill-uninitialized"]["over"] == "deterministic-algorithms"
    assert all(len(row["ratios"]) == 2 and not row["failure"] for row in report["costs"]), report
    assert report["steps"] == 5
    assert all(ratio == 1 for ratio in rows["off"]["ratios"])
    assert {"name": "matmul-precision", "reason": "watched, not set"} in report["left_out"]
    assert list(tmp_path.iterdir()) == [script]


def test_the_table_fits_a_terminal(tmp_path):
    """A script without an optimizer is timed by its backward passes."""
    script = write(tmp_path, "by_hand.py", BY_HAND)
    done = samebits("cost", "--steps", 4, "--rounds", 1, script, cwd=tmp_path, COLUMNS="80")

    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "deterministic-algorithms" in done.stdout


def test_what_cannot_be_timed_is_one_line(tmp_path):
    """Too few steps, a script that fails or ends at once, a script that is not there."""
    short = write(tmp_path, "short.py", SEEDED, STEPS=2)
    broken = write(tmp_path, "broken.py", "raise ValueError('no data')\n")
    gone = write(tmp_path, "gone.py", "import os\nos._exit(3)\n")
    said_of = {short: "took 2 steps", broken: "no data", gone: "with exit status 3", "none.py": "none.py"}
    for script, said in said_of.items():
        done = samebits("cost", script, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in complaints(done.stderr)[0]
        assert ("at least 7 steps" in done.stderr) is (script == short)  # of no use to what failed
