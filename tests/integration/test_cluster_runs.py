"""Runs in jobs of submitit and tasks of Ray: the real libraries, with this machine as the cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_support import NOISY, SEEDED, complaints, environment, samebits, write

SLURM = ("--executor", "slurm", "--executor-option", "cluster=local")
RAY = ("--executor", "ray", "--executor-option", "address=local")
KILLS_ITS_JOB = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"


def need(package):
    """Skip where it is not installed; it is not imported, because Ray leaves handlers behind."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.fixture(params=["slurm", "ray"])
def cluster(request):
    """The options for an executor that can be used here."""
    need({"slurm": "submitit", "ray": "ray"}[request.param])
    return {"slurm": SLURM, "ray": RAY}[request.param]


def test_a_difference_is_found_and_explained(tmp_path, cluster):
    """The runs, those that explain, and those with a patch are jobs; sites are those of the user's files."""
    script = write(tmp_path, "noisy.py", NOISY)

    done = samebits("verify", *cluster, script.name, cwd=tmp_path, timeout=500)

    assert done.returncode == 1, done.stderr
    assert re.search(r"\n  noisy\.py:\d+\n", done.stdout)
    assert "with this change 1 pair of runs was identical" in done.stdout
    assert done.stdout.count("loss ") == 0
    assert {path.name for path in (tmp_path / ".samebits/noisy-verify-1").iterdir()} >= {
        "run-1.sbr",
        "run-2.sbr",
    }


def test_identical_runs_print_what_they_print_here(tmp_path, cluster):
    """Three jobs; their digest is that of a run of this machine, and so is what the script prints."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=4)
    here = json.loads(samebits("verify", "--json", script.name, cwd=tmp_path).stdout)

    done = samebits("verify", "--runs", "3", "--json", *cluster, script.name, cwd=tmp_path)

    there = json.loads(done.stdout)
    assert there["verdict"] == "identical", done.stderr
    assert there["final_digest"][0] == here["final_digest"][0]
    assert done.stderr.count("loss ") == 3


def test_a_lost_job_is_one_line(tmp_path, cluster):
    """The job's own process is killed: nothing comes back."""
    script = write(tmp_path, "kills.py", KILLS_ITS_JOB)

    done = samebits("verify", *cluster, script.name, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    (line,) = [line for line in complaints(done.stderr) if line.startswith("samebits:")]
    assert "ended without a result" in line
    assert done.stderr.endswith("samebits explain executor-job\n")


def test_an_error_of_samebits_in_a_job_is_that_of_the_command(tmp_path, cluster):
    """It has its own words and its own section, as if it were raised here."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)

    done = samebits("cost", *cluster, script.name, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "took 2 steps; expected at least" in complaints(done.stderr)[0]
    assert done.stderr.endswith("samebits explain cost-no-steps\n")


def test_jobs_leave_no_secret_and_no_copies(tmp_path):
    """The folder of the jobs is the user's alone; variables of the command are not written into it."""
    need("submitit")
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)
    secret = "hf_" + "S3cr3t" * 6

    done = samebits("verify", *SLURM, script.name, cwd=tmp_path, HF_TOKEN=secret, UNSUSPICIOUS=secret)

    jobs = tmp_path / ".samebits/jobs"
    assert done.returncode == 0, done.stderr
    assert jobs.stat().st_mode & 0o077 == 0
    assert [path.name for path in jobs.rglob("*") if path.suffix == ".pkl"] == []
    assert not any(secret.encode() in path.read_bytes() for path in jobs.rglob("*") if path.is_file())


def test_ctrl_c_cancels_the_jobs(tmp_path, cluster):
    """The script's processes are gone when the command has ended."""
    pids = tmp_path / "pids"
    pids.mkdir()
    path = f"os.path.join({str(pids)!r}, str(os.getpid()))"
    source = f"import os, time, torch\nopen({path}, 'w').close()\ntime.sleep(300)\n"
    script = write(tmp_path, "waits.py", source)
    words = [sys.executable, "-m", "samebits", "verify", *cluster, script.name]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    ) as command:
        deadline = time.monotonic() + 120
        while not list(pids.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.1)
        command.send_signal(signal.SIGINT)
        _, errors = command.communicate(timeout=60)

    assert command.returncode == 130, errors
    assert "interrupted" in errors
    started = [int(path.name) for path in pids.iterdir()]
    assert started
    while any(map(is_running, started)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_running, started))


def is_running(pid: int) -> bool:
    """Whether there is such a process that is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_seeds_are_jobs(tmp_path, cluster):
    """The report is that of runs made here."""
    script = write(tmp_path, "train.py", SEEDED.replace("torch.manual_seed(0)", ""), STEPS=4)
    words = ("spread", "--json", "--no-plot", "--seeds", "0..1")
    here = json.loads(samebits(*words, script.name, cwd=tmp_path).stdout)

    done = samebits(*words, "--fresh", *cluster, script.name, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    finals = [[run["final"] for run in each["configurations"][0]["runs"]] for each in (here, there)]
    assert len(finals[0]) == 2
    assert finals[0] == finals[1]


def test_cost_names_the_machine(tmp_path):
    """All variants are measured in one job."""
    need("submitit")
    script = write(tmp_path, "train.py", SEEDED, STEPS=20)

    done = samebits("cost", "--json", "--steps", 3, "--rounds", 1, *SLURM, script.name, cwd=tmp_path)

    assert json.loads(done.stdout)["machine"] == os.uname().nodename, done.stderr
    jobs = list((tmp_path / ".samebits/jobs").glob("*_log.out"))  # what each printed is kept
    assert len(jobs) == 1


def test_entries_of_a_lock_are_jobs(tmp_path):
    """Each is checked in a job of its own, with all that a check here says."""
    need("submitit")
    script = write(tmp_path, "train.py", SEEDED, STEPS=4)
    locked = samebits("lock", script.name, cwd=tmp_path)
    assert locked.returncode == 0, locked.stderr

    same = samebits("check", *SLURM, "--json", cwd=tmp_path)
    script.write_text(script.read_text().replace("lr=0.1", "lr=0.2"))
    other = samebits("check", *SLURM, "--json", cwd=tmp_path)

    assert (same.returncode, other.returncode) == (0, 1), other.stderr
    assert json.loads(same.stdout)["verdict"] == "identical"
    assert json.loads(other.stdout)["verdict"] == "different"


def test_a_recorded_run_is_checked_in_a_job(tmp_path, cluster):
    """Its record comes back; verdict, output and advice are those of a check here."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=4)
    made = samebits("run", "--seed", 3, "--record", "golden.sbr", script.name, cwd=tmp_path)
    assert made.returncode == 0, made.stderr

    words = ("check", *cluster, "--record", "again.sbr", "--json", "golden.sbr")
    same = samebits(*words, cwd=tmp_path)
    script.write_text(script.read_text().replace("lr=0.1", "lr=0.2"))
    other = samebits("check", *cluster, "golden.sbr", cwd=tmp_path)

    assert (same.returncode, other.returncode) == (0, 1), same.stderr + other.stderr
    assert json.loads(same.stdout)["verdict"] == "identical"
    assert same.stderr.count("loss ") == 1
    assert (tmp_path / "again.sbr").is_file()
    assert other.stdout.count("loss ") == 1
    assert "different: the state differs at step 0" in other.stdout
    assert (tmp_path / ".samebits/train-check-1.sbr").is_file()


def test_a_lock_is_not_written_by_a_job(tmp_path):
    """It would hold the environment of another machine."""
    need("submitit")
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)
    assert samebits("lock", script.name, cwd=tmp_path).returncode == 0

    done = samebits("check", "--update", *SLURM, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "--update writes what this machine gives" in complaints(done.stderr)[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--executor-option", "partition=gpu"), "--executor slurm or ray"),
        (("--executor", "slurm"), "there is no Slurm here"),
        ((*SLURM, "--fresh"), "--fresh does not work"),
        (("--executor", "slurm", "--executor-option", "partition"), "expected NAME=VALUE"),
        (("--executor", "ray", "--executor-option", "num_cpus=x"), "expected a number"),
        (("--executor", "ray", "--executor-option", "num_cpus=-1"), "expected a number"),
        (("--executor", "ray", "--executor-option", "num_gpus=nan"), "expected a number"),
        ((*RAY, "--executor-option", "magic=1"), "has magic: 0"),
        ((*SLURM, "--nproc-per-node", "2"), "--nproc-per-node"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, words, said):
    """Options without an executor, no cluster, options that do not go together."""
    need("submitit")
    need("ray")
    script = write(tmp_path, "train.py", SEEDED, STEPS=2)

    done = samebits("verify", *words, script.name, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in complaints(done.stderr)[0]
