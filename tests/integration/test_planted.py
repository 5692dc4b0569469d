"""The harness of the planted corpus on a few of its scripts, end to end."""

import json
import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).parents[2] / "bench" / "planted" / "run.py"


def run(*words):
    """Run the harness."""
    command = [sys.executable, str(HARNESS), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_planted_and_clean_scripts_are_judged(tmp_path):
    """Planted ones are seen at their line and with their cause, the clean one is identical."""
    path = tmp_path / "found.json"
    done = run("cnn_never_seeded", "policy_gradient_actions", "negative_zero", "--json", path)

    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(path.read_text())}
    seen = [
        (row["verdict"], row["line"], row["cause"]) for row in rows.values() if row["expected"] != "clean"
    ]
    assert seen == [("different", "hit", "hit")] * 2
    assert rows["negative_zero"]["verdict"] == "identical"
    assert "origin line              2 of 2 (100 %)" in done.stdout
    assert "false alarms             0 of 1 (0 %)" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 120

    again = run("cnn_never_seeded", "--json", path, "--resume")
    kept = {row["name"]: row["seconds"] for row in json.loads(path.read_text())}
    assert kept["cnn_never_seeded"] == rows["cnn_never_seeded"]["seconds"]
    assert "1 of 1 (100 %)" in again.stdout


def test_resume_without_a_file_is_refused():
    """There is nothing to resume from."""
    done = run("--resume")

    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].endswith("--resume needs --json FILE")
