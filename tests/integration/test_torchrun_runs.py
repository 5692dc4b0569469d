"""Runs on the ranks of torchrun: the real launcher, with two agents on this machine as two machines."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from cli_support import NOISY, SEEDED, complaints, environment, samebits, write

ON_RANKS = ("--executor", "torchrun")
KILLS_ITS_JOB = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"


def launcher(*words):
    """The words of torchrun before a command of samebits."""
    return [sys.executable, "-m", "torch.distributed.run", *words, "-m", "samebits"]


def on_two_ranks(*words, cwd, **more):
    """A finished command on two ranks of this machine."""
    command = [*launcher("--standalone", "--nproc-per-node", "2"), *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=500, check=False
    )


def on_two_machines(*words, folders):
    """What a command prints on the first of two agents, and what both print on stderr."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agents = []
    with contextlib.ExitStack() as stack:
        for number, folder in enumerate(folders):
            where = ("--nnodes", "2", "--node-rank", str(number), "--nproc-per-node", "1")
            where += ("--master-addr", "127.0.0.1", "--master-port", str(port))
            agent = subprocess.Popen(
                [*launcher(*where), *words],
                cwd=folder,
                env=environment(OMP_NUM_THREADS="1"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.callback(agent.kill)
            agents.append(stack.enter_context(agent))
        printed = [agent.communicate(timeout=500) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], printed
    return printed[0][0], [errors for _, errors in printed]


def test_a_difference_is_found_and_explained(tmp_path):
    """The runs, those that explain, and those with a patch are jobs; sites are those of the user's files."""
    script = write(tmp_path, "noisy.py", NOISY)

    done = on_two_ranks("verify", *ON_RANKS, script.name, cwd=tmp_path)

    assert done.returncode == 1, done.stderr
    assert re.search(r"\n  noisy\.py:\d+\n", done.stdout)
    assert "with this change 1 pair of runs was identical" in done.stdout
    assert {path.name for path in (tmp_path / ".samebits/noisy-verify-1").iterdir()} >= {
        "run-1.sbr",
        "run-2.sbr",
    }


def test_runs_on_two_machines(tmp_path):
    """Each makes runs in its own folder; they are those of no rank, and come back to the first."""
    folders = [tmp_path / name for name in ("here", "there")]
    folders[0].mkdir()
    told = "import os, sys\nprint('ran in', os.getcwd(), os.environ.get('RANK'), file=sys.stderr)\n"
    script = write(folders[0], "train.py", SEEDED, STEPS=4)
    script.write_text(told + script.read_text())
    shutil.copytree(*folders)
    one = samebits("verify", "--json", script.name, cwd=folders[0], OMP_NUM_THREADS="1")

    printed, errors = on_two_machines(
        "verify", "--runs", "4", "--json", *ON_RANKS, script.name, folders=folders
    )

    result = json.loads(printed)
    assert result["verdict"] == "identical", errors
    assert result["final_digest"] == json.loads(one.stdout)["final_digest"]
    ran = re.findall(r"^ran in (\S+) (\S+)$", errors[0], re.MULTILINE)
    assert len(ran) == 4
    assert set(ran) == {(str(folder), "None") for folder in folders}
    assert not (folders[1] / ".samebits").exists()


def test_seeds_are_jobs(tmp_path):
    """The report is that of runs made here."""
    script = write(tmp_path, "train.py", SEEDED.replace("torch.manual_seed(0)", ""), STEPS=4)
    words = ("spread", "--json", "--no-plot", "--seeds", "0..2")
    here = json.loads(samebits(*words, script.name, cwd=tmp_path, OMP_NUM_THREADS="1").stdout)

    done = on_two_ranks(*words, "--fresh", *ON_RANKS, script.name, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    finals = [[run["final"] for run in each["configurations"][0]["runs"]] for each in (here, there)]
    assert len(finals[0]) == 3
    assert finals[0] == finals[1]


def test_cost_names_the_machine(tmp_path):
    """All variants are measured by one rank."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=20)

    done = on_two_ranks("cost", "--json", "--steps", 3, "--rounds", 1, *ON_RANKS, script.name, cwd=tmp_path)

    assert json.loads(done.stdout)["machine"] == socket.gethostname(), done.stderr


def test_entries_of_a_lock_and_a_record_are_checked(tmp_path):
    """Each entry by a rank, with all that a check here says."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=4)
    for words in (("lock",), ("run", "--record", "golden.sbr")):
        made = samebits(*words, script.name, cwd=tmp_path, OMP_NUM_THREADS="1")
        assert made.returncode == 0, made.stderr

    same = [on_two_ranks("check", *what, *ON_RANKS, "--json", cwd=tmp_path) for what in ((), ("golden.sbr",))]
    script.write_text(script.read_text().replace("lr=0.1", "lr=0.2"))
    other = on_two_ranks("check", *ON_RANKS, "--json", cwd=tmp_path)

    assert [json.loads(done.stdout)["verdict"] for done in same] == ["identical"] * 2, same[0].stderr
    assert json.loads(other.stdout)["verdict"] == "different", other.stderr


def test_a_lost_job_is_one_line(tmp_path):
    """The job's own process is killed: nothing comes back."""
    script = write(tmp_path, "kills.py", KILLS_ITS_JOB)

    done = on_two_ranks("verify", *ON_RANKS, script.name, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")  # that of torchrun, whatever its ranks give
    lost = "ended without a result (its process ended with status -9)"
    assert len([line for line in complaints(done.stderr) if lost in line]) == 1
    assert "samebits explain executor-job\n" in done.stderr


def test_an_error_of_samebits_in_a_job_is_that_of_the_command(tmp_path):
    """It has its own words and its own section, as if it were raised here."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)

    done = on_two_ranks("cost", *ON_RANKS, script.name, cwd=tmp_path)

    assert done.stdout == ""
    assert "took 2 steps; expected at least" in done.stderr
    assert "samebits explain cost-no-steps\n" in done.stderr


def test_ctrl_c_ends_the_jobs(tmp_path):
    """The script's processes are gone when the launcher has ended."""
    pids = tmp_path / "pids"
    pids.mkdir()
    path = f"os.path.join({str(pids)!r}, str(os.getpid()))"
    source = f"import os, time, torch\nopen({path}, 'w').close()\ntime.sleep(300)\n"
    script = write(tmp_path, "waits.py", source)
    words = [*launcher("--standalone", "--nproc-per-node", "2"), "verify", *ON_RANKS, script.name]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    ) as command:
        deadline = time.monotonic() + 120
        while len(list(pids.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        command.send_signal(signal.SIGINT)
        _, errors = command.communicate(timeout=90)

    started = [int(path.name) for path in pids.iterdir()]
    assert len(started) == 2, errors
    while any(map(is_running, started)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_running, started)), errors


def is_running(pid: int) -> bool:
    """Whether there is such a process that is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (ON_RANKS, "this process is not one of several ranks"),
        ((*ON_RANKS, "--executor-option", "partition=gpu"), "give torchrun its options"),
        ((*ON_RANKS, "--fresh"), "--fresh does not work"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, words, said):
    """No launcher, options of another executor, options that do not go together."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)

    done = samebits("verify", *words, script.name, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in complaints(done.stderr)[0]


def test_a_launcher_without_an_address_is_one_line(tmp_path):
    """One that sets ranks only."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)

    done = samebits("verify", *ON_RANKS, script.name, cwd=tmp_path, RANK="0", WORLD_SIZE="2")

    assert (done.returncode, done.stdout) == (2, "")
    assert "MASTER_ADDR" in complaints(done.stderr)[0]


def test_the_first_rank_holds_the_store_where_the_launcher_does_not(tmp_path):
    """As under launchers that set the variables of torchrun, but have no store of their own."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [sys.executable, "-m", "samebits", "verify", *ON_RANKS, script.name]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks = [
        subprocess.Popen(words, cwd=tmp_path, env=environment(RANK=rank, **shared), stdout=subprocess.PIPE)
        for rank in "01"
    ]
    printed = [rank.communicate(timeout=200)[0].decode() for rank in ranks]

    assert [rank.returncode for rank in ranks] == [0, 0]
    assert "identical: 2 runs" in printed[0]
    assert printed[1] == ""
