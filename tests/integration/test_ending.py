"""How commands end: one process for `run`, signals, the death of a parent, the end of other commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
from process_support import heed_signals, is_gone

SAMEBITS = (sys.executable, "-m", "samebits")

# Does not end by itself, nor by SIGTERM; neither does what it starts.
ENDLESS = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
below = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
own = f"pids.{os.getpid()}"  # several seeds run at the same time
with open(own, "w") as file:
    file.write(f"{os.getpid()} {below.pid}")
os.rename(own, "pids")
time.sleep(100)
"""
# The runs differ, and those after the first two do not end.
DIFFERENT = """
import os, sys, time, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.rand(4, 2)).sum().backward()
    optimizer.step()
    if os.path.exists("runs") and os.path.getsize("runs") >= {whole_runs}:
        with open("pids.part", "w") as file:
            file.write(str(os.getpid()))
        os.rename("pids.part", "pids")
        time.sleep(100)
    with open("runs", "a") as file:
        file.write("x")
"""


def start(folder: Path, source: str, *words: str, **fields: object) -> subprocess.Popen[str]:
    """Write a script and start a command on it, in a session of its own."""
    (folder / "script.py").write_text(dedent(source))
    fields.setdefault("preexec_fn", heed_signals)
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [*SAMEBITS, *words, "script.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **fields,
    )


def pids(folder: Path) -> list[int]:
    """The processes of a script, once it has told which they are."""
    for _ in range(3000):
        copy = ".samebits/script-resume-1/working-copy/pids"
        for found in (folder / "pids", folder / copy):
            if found.exists():
                return [int(word) for word in found.read_text().split()]
        time.sleep(0.02)
    raise AssertionError("the script did not begin")


def test_run_is_one_process(tmp_path: Path) -> None:
    """Number, parent, group and streams are those of bare Python; so is what a signal does."""
    source = """
        import os, signal, sys
        print(os.getpid(), os.getppid(), os.getpgrp(), flush=True)
        signal.pause()
    """
    process = start(tmp_path, source, "run")
    assert process.stdout is not None
    assert process.stdout.readline().split() == [str(n) for n in (process.pid, os.getpid(), process.pid)]
    process.send_signal(signal.SIGQUIT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (-signal.SIGQUIT, "", "")


def test_a_killed_run_leaves_its_record(tmp_path: Path) -> None:
    """All but the last events can be read."""
    source = """
        import os, signal, torch
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(600):
            model(torch.ones(4, 2)).sum().backward()
            optimizer.step()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    process = start(tmp_path, source, "run", "--record", "a.sbr")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    found = json.loads(subprocess.check_output([*SAMEBITS, "show", "--json", "a.sbr"], cwd=tmp_path))
    assert found["status"] == "running"
    assert found["steps"] > 100


FAREWELLS = {
    "": True,
    "import os; os._exit(3)": True,
    "import os; os.chdir('/'); print(1)": True,
    "import os; os.close(2)": False,
    "import os; os.dup2(os.open('own.txt', os.O_CREAT | os.O_WRONLY), 2)": False,
}


@pytest.mark.parametrize("source", FAREWELLS)
def test_the_last_line_of_a_run(tmp_path: Path, source: str) -> None:
    """Goes to standard error as it was, and never into a file that the script put in its place."""
    process = start(tmp_path, source, "run", "--record", "a.sbr")
    _, err = process.communicate(timeout=30)
    assert err.splitlines() == (["samebits: 0 steps recorded in a.sbr"] if FAREWELLS[source] else [])
    assert not (tmp_path / "own.txt").exists() or (tmp_path / "own.txt").read_text() == ""


COMMANDS = {
    "verify": ("verify",),
    "resume-check": ("resume-check", "--resume-args", ""),
    "spread": ("spread",),
    "cost": ("cost",),
    "ranks": ("verify", "--nproc-per-node", "2"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_when_it_is_told(tmp_path: Path, command: str) -> None:
    """By one SIGTERM, with all that it has started, although the script does not listen."""
    process = start(tmp_path, ENDLESS, *COMMANDS[command])
    started = pids(tmp_path)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    records = command not in ("spread", "cost")  # no seed has finished
    kept = "; what was recorded so far is kept" if records else ""
    assert f"samebits: ended by SIGTERM{kept}" in err.splitlines()
    assert all(map(is_gone, started))


def test_a_command_that_is_killed_takes_its_run_along(tmp_path: Path) -> None:
    """Nothing trains on without it."""
    process = start(tmp_path, ENDLESS, "verify")
    pid, below = pids(tmp_path)
    process.kill()
    try:
        assert is_gone(pid)
    finally:
        os.kill(below, signal.SIGKILL)  # as under bare Python, where the script is killed
    process.communicate()


@pytest.mark.parametrize(
    ("words", "whole_runs", "known"),
    [
        ((), 2, "different"),
        (("--runs", "3", "--seed", "1"), 4, "interrupted after 2 of 3 runs, which gave the same bits"),
    ],
)
def test_what_is_known_is_told(tmp_path: Path, words: tuple[str, ...], whole_runs: int, known: str) -> None:
    """The verdict stands when the search for the cause is ended; so does what some of the runs have shown."""
    process = start(tmp_path, DIFFERENT.format(whole_runs=whole_runs), "verify", *words)
    started = pids(tmp_path)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert known in out
    assert "ended by SIGTERM" in err
    assert all(map(is_gone, started))


BUSY = """
import os, signal, sys, threading, time
sys.path.insert(0, {source!r})
from samebits.cli.ending import Ended, Ending
with Ending(own_process=True) as ending:
    try:
        print("ready", flush=True)
        {busy}
    except Ended:
        print(ending.words, ending.status, flush=True)
        {after}
"""


@pytest.mark.parametrize(
    ("busy", "after", "sent", "shown", "status"),
    [
        ("while True: pass", "", 1, "ended by SIGTERM 143\n", 0),
        ("time.sleep(60)", "time.sleep(60)", 1, "ended by SIGTERM 143\n", 143),
        ("time.sleep(60)", "time.sleep(60)", 2, "ended by SIGTERM 143\n", -15),
    ],
)
def test_a_signal_ends_whatever_goes_on(
    tmp_path: Path, busy: str, after: str, sent: int, shown: str, status: int
) -> None:
    """Also what runs in this process; what takes too long is left; a second signal ends at once."""
    source = str(Path(__file__).parents[2] / "src")
    program = BUSY.format(source=source, busy=busy, after=after or "pass")
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    text = process.stdout.readline()
    if sent == 2:
        process.send_signal(signal.SIGTERM)
    assert (text, process.wait(60)) == (shown, status)


def test_signals_that_were_ignored_stay_so(tmp_path: Path) -> None:
    """`nohup samebits verify` is not ended by a hang-up."""
    source = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parents[2] / "src")!r})
        from samebits.cli.ending import Ending
        with Ending(own_process=True):
            os.kill(os.getpid(), signal.SIGHUP)
            print("still here")
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(source)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert (done.returncode, done.stdout) == (0, "still here\n")
