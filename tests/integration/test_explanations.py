"""`samebits verify` says why: cause, line, what was tried, and the sentence at the end; on real scripts."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_support import environment, judged, samebits, write

START = """
    import hashlib, os, random, secrets, tempfile, threading, time
    from concurrent.futures import ThreadPoolExecutor, as_completed
    import numpy as np
    import torch
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    BODY
    for step in range(2):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
"""
# Lines behind line 8; the cause, the intervention that shows it, and which of the lines are right.
PLANTED = {
    "set": (
        ["words = {f'w{i}' for i in range(50)}", "x = x * torch.tensor([float(w[1:]) for w in words][:4])"],
        "hash-order",
        "hash seed fixed",
        {9, 10},
    ),
    "two sources differ, one matters": (
        [
            "folder = tempfile.mkdtemp()",
            "_ = [open(f'{folder}/{secrets.token_hex(8)}', 'w').close() for _ in range(3)]",
            "name = min(os.listdir(folder))",
            "x = x * sum(map(ord, name))",
        ],
        "os-entropy",
        "system's entropy fixed",
        {9, 10, 12},
    ),
    "completion": (
        [
            # All threads start at once and work without the lock of the interpreter: the scheduler orders
            # them, on any number of cores, and two of 24! orders are all but never the same. Threads that
            # sleep come in the order of their times.
            "pool, gate = ThreadPoolExecutor(24), threading.Barrier(24)",
            "fs = [pool.submit(lambda: (gate.wait(), hashlib.sha256(bytes(1_000_000)))) for i in range(24)]",
            "order = [fs.index(f) for f in as_completed(fs)]",
            "x = x + torch.tensor(order).float().view(6, 4)",
        ],
        "race",
        "order of submission",
        {11, 12},
    ),
    "clock far away": (
        ["now = time.time()", "x = x + 1", "y = x * 2", "x = x * (now % 1)"],
        "wall-clock",
        "clock frozen",
        {9, 12},
    ),
    "kernel": (
        [
            # Of a quarter of this, two threads on a busy machine give the same sums in two runs of three.
            "torch.set_num_threads(8)",
            "at = torch.randint(0, 4, (4_000_000,))",
            "table = torch.zeros(4).index_put((at,), torch.rand(4_000_000), accumulate=True)",
            "x = x * table",
        ],
        "nondeterministic-kernel",
        "deterministic algorithms",
        {11},
    ),
}
CHANGED = "with the change below"  # where a change could be run before anything was pinned
# No line could be proposed in their place, so none was run: they are pinned only.
PINNED_ONLY = ("two sources differ, one matters",)


def verify(folder, lines, *words):
    """The judgement over a script with these lines."""
    write(folder, "train.py", START, BODY="\n".join(lines))
    return judged(samebits("verify", "--json", *words, "train.py", cwd=folder, timeout=600))


@pytest.mark.parametrize("name", PLANTED)
def test_cause_and_line_are_shown_by_pinned_runs(tmp_path, name):
    lines, cause, words, right = PLANTED[name]
    found = verify(tmp_path, lines)["findings"][0]
    assert found["cause"] == cause, found
    assert words in found["confirmed_by"] or CHANGED in found["confirmed_by"]
    assert found["site"]["line"] in right
    tried = name not in PINNED_ONLY
    assert found["remedy"]["confirmed"] is (True if tried else None)
    assert bool(found["remedy"]["changes"]) is tried


def test_the_report_ends_with_why_and_keeps_the_rest_for_verbose(tmp_path):
    write(tmp_path, "train.py", START, BODY="x = x * np.random.rand()")
    short = samebits("verify", "train.py", cwd=tmp_path)
    text = " ".join(short.stdout.split())
    assert short.returncode == 1
    assert (
        "why step 0: train.py:9 drew from NumPy's global generator, which nothing seeds; with the "
        "change below, 1 pair of runs was identical"
    ) in text
    assert len(short.stdout.splitlines()) <= 30  # with what was said before it was proven
    assert max(map(len, short.stdout.splitlines())) <= 100
    long = samebits("verify", "--verbose", "--no-interventions", "train.py", cwd=tmp_path)
    assert "found NumPy's generator in a different state in each run" in " ".join(long.stdout.split())
    assert "found NumPy's generator" not in text


def test_two_sources_are_confirmed_together(tmp_path):
    lines = ["x = x * np.random.rand()", "print(x.sum().item())", "x = x * random.random()"]
    findings = verify(tmp_path, lines)["findings"]
    assert [found["cause"] for found in findings] == ["unseeded-numpy", "unseeded-python"]
    assert all("1 pair of runs was identical" in found["confirmed_by"] for found in findings)
    added = [line for change in findings[0]["remedy"]["changes"] for line in change["after"]]
    assert {"random.seed(0)", "np.random.seed(0)"} <= set(added)


def test_when_the_budget_is_spent_what_is_known_is_printed(tmp_path):
    lines = ["x = x * np.random.rand()"]
    result = verify(tmp_path, lines, "--budget", "1")
    assert result["verdict"] == "different"
    assert result["findings"]
    assert any("--budget SECONDS gives it more" in note for note in result["notes"])


def test_what_differed_only_once_is_said_so(tmp_path):
    """The first two runs differ, all others are alike."""
    lines = [
        "try:",
        "    os.mkdir('made')",  # a file would be one that run 2 read of run 1, and run 3 would be compared
        "except FileExistsError:",
        "    x = x * 2",
    ]
    result = verify(tmp_path, lines)
    assert result["verdict"] == "different"
    assert any("did not differ in 3 more pairs" in note for note in result["notes"])
    assert result["notes"][0].startswith("further runs without any change did not differ")
    assert result["findings"][0]["cause"] == "unknown"
    assert result["findings"][0]["confirmed_by"] == ""


def test_a_difference_before_any_operation_of_torch(tmp_path):
    lines = ["if os.getpid() % 2 or True:", "    print(torch.tensor(float(os.getpid())).item())"]
    found = verify(tmp_path, lines)["findings"][0]
    assert found["cause"] == "environment"
    assert "process numbers" in found["confirmed_by"] or CHANGED in found["confirmed_by"]


def test_a_script_that_forks_processes_of_its_own(tmp_path):
    lines = [
        "import multiprocessing as mp",
        "pool = mp.get_context('fork').Pool(2)",
        "x = x * sum(pool.map(abs, [1, 2])) * np.random.rand()",
        "pool.close()",
    ]
    found = verify(tmp_path, lines)["findings"][0]
    assert (found["cause"], found["site"]["line"]) == ("unseeded-numpy", 11)
    assert ", 1 pair of runs was identical" in found["confirmed_by"]


def test_output_of_the_script_is_shown_for_the_compared_runs_only(tmp_path):
    write(tmp_path, "train.py", START, BODY="x = x * np.random.rand(); print('once a run')")
    result = subprocess.run(
        [sys.executable, "-m", "samebits", "verify", "train.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.splitlines().count("once a run") == 2
