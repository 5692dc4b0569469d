"""Anything that a user can get wrong ends in one clear line and the right exit code."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from cli_support import SEEDED, complaints, environment, judged, samebits, start, write

RAISES = """
    import torch
    weight = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(3):
        weight.square().sum().backward()
        optimizer.step()
    CONDITION
"""
ENDLESS = """
    import time
    import torch
    weight = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(10**6):
        weight.square().sum().backward()
        optimizer.step()
        time.sleep(0.005)
        open("steps", "w").write(str(step))
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Two records of one script."""
    folder = tmp_path_factory.mktemp("records")
    script = write(folder, "train.py", SEEDED, STEPS=3)
    for name in ("a.sbr", "b.sbr"):
        assert samebits("run", "--record", name, script, cwd=folder).returncode == 0
    return folder


def assert_refused(result: subprocess.CompletedProcess[str], *words: str, slug: str) -> None:
    """Exit status 2; one line that has these words, then the link; no traceback of ours."""
    assert result.returncode == 2, result.stderr
    lines = complaints(result.stderr)
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert f"see docs/reference/messages.md#{slug}" in result.stderr
    assert "samebits/" not in result.stderr.replace("see docs/", "")
    assert "Traceback" not in result.stderr


def reason(result: subprocess.CompletedProcess[str]) -> str:
    """Why a script was not judged: the first line of the report."""
    assert result.returncode == 2, result.stdout + result.stderr
    first = result.stdout.split("\n\n")[0]
    _, _, text = " ".join(first.split()).partition("not judged: ")
    assert text, result.stdout
    return text


@pytest.mark.parametrize("command", ["run", "verify"])
def test_missing_script(tmp_path, command):
    """And nothing is left behind."""
    result = samebits(command, "nothing.py", cwd=tmp_path)

    assert_refused(result, "nothing.py", slug="script-missing")
    assert list(tmp_path.iterdir()) == []


def test_missing_module(tmp_path):
    """Found out by running."""
    result = samebits("verify", "-m", "no_such_module", cwd=tmp_path)

    assert_refused(result, "no_such_module", slug="module-missing")


def test_missing_script_as_json(tmp_path):
    """One JSON object even then."""
    result = samebits("verify", "--json", "nothing.py", cwd=tmp_path)

    assert result.returncode == 2
    assert judged(result)["verdict"] == "not_judged"
    assert "nothing.py" in judged(result)["reason"]


def test_script_that_raises_in_both_runs(tmp_path):
    """With the step, the exception and the exit status."""
    script = write(tmp_path, "train.py", RAISES, CONDITION='raise ValueError("no such luck")')

    result = samebits("verify", script, cwd=tmp_path)

    assert reason(result).endswith(
        "train.py failed in both runs: ValueError: no such luck (at step 3, exit status 1)"
    )
    assert result.stderr.count("Traceback") == 2
    assert "samebits" not in result.stderr.replace(str(tmp_path), "")


def test_script_that_raises_in_one_run(tmp_path):
    """Which one."""
    condition = 'import pathlib; f = pathlib.Path("ran"); f.exists() and 1 / 0; f.touch()'
    script = write(tmp_path, "train.py", RAISES, CONDITION=condition)

    result = samebits("verify", script.name, cwd=tmp_path)

    assert reason(result) == (
        "train.py failed in run 2 only: ZeroDivisionError: division by zero (at step 3, exit status 1);"
        " run 1 did not fail"
    )


def test_different_number_of_steps(tmp_path):
    """All steps that both have are equal, and still the runs differ."""
    source = 'import pathlib; n = 2 if pathlib.Path("ran").exists() else 4; pathlib.Path("ran").touch()'
    script = tmp_path / "train.py"
    script.write_text(source + "\n" + write(tmp_path, "x", SEEDED, STEPS="n").read_text())

    result = samebits("verify", "--json", "--no-localise", script.name, cwd=tmp_path)

    assert (result.returncode, judged(result)["verdict"]) == (1, "different")
    assert "different numbers of steps" in judged(result)["reason"]


@pytest.mark.parametrize(("name", "source"), [("empty.py", ""), ("plain.py", "print(1 + 1)\n")])
def test_script_without_torch(tmp_path, name, source):
    """Known after one run."""
    (tmp_path / name).write_text(source)

    result = samebits("verify", name, cwd=tmp_path)

    shown = result.stdout.partition("not judged")
    assert shown[0] == ("2\n" if source else "")
    assert f"{name} never imported torch: nothing to compare" in shown[2]
    assert result.returncode == 2


def test_script_that_uses_torch_for_nothing(tmp_path):
    """No step, no read."""
    (tmp_path / "idle.py").write_text("import torch\n")

    result = samebits("verify", "idle.py", cwd=tmp_path)

    assert result.returncode == 2
    assert "not judged" in result.stdout


def test_missing_record(tmp_path):
    """Named."""
    assert_refused(samebits("show", "none.sbr", cwd=tmp_path), "none.sbr", slug="record-missing")


def test_unknown_record_version(records, tmp_path):
    """Refused, not read with hope."""
    path = shutil.copy(records / "a.sbr", tmp_path / "new.sbr")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")

    assert_refused(samebits("show", path, cwd=tmp_path), "new.sbr", "99", slug="record-version")


@pytest.mark.parametrize("command", ["show", "compare"])
def test_truncated_record(records, tmp_path, command):
    """Half of a file."""
    data = (records / "a.sbr").read_bytes()
    path = tmp_path / "half.sbr"
    path.write_bytes(data[: len(data) // 2])
    others = [records / "b.sbr"] if command == "compare" else []

    result = samebits(command, path, *others, cwd=tmp_path)

    assert_refused(result, "half.sbr", slug="record-damaged")
    assert path.read_bytes() == data[: len(data) // 2]


def test_random_bytes_as_record(tmp_path):
    """No record at all."""
    path = tmp_path / "noise.sbr"
    path.write_bytes(random.Random(0).randbytes(20_000))

    assert_refused(samebits("show", path, cwd=tmp_path), "noise.sbr", slug="record-foreign")


def test_record_of_another_script(records, tmp_path):
    """Not comparable, and said so."""
    script = write(tmp_path, "other.py", SEEDED, STEPS=3)
    assert samebits("run", "--record", "o.sbr", script, cwd=tmp_path).returncode == 0

    result = samebits("compare", records / "a.sbr", "o.sbr", cwd=tmp_path)

    assert "train.py" in reason(result)
    assert "other.py" in reason(result)


def test_existing_record_is_kept(records):
    """Unless --force."""
    before = (records / "a.sbr").read_bytes()

    result = samebits("run", "--record", "a.sbr", "train.py", cwd=records)

    assert_refused(result, "a.sbr", "--force", slug="record-exists")
    assert (records / "a.sbr").read_bytes() == before


@pytest.mark.parametrize("where", ["/proc/none/a.sbr", "train.py/a.sbr"])
def test_unwritable_place(records, where):
    """The script is not run for nothing."""
    result = samebits("run", "--record", where, "train.py", cwd=records)

    assert_refused(result, where, slug="record-unwritable")
    assert "loss" not in result.stdout


def test_read_only_directory(tmp_path):
    """Made immutable, because tests may run as root."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    script = write(tmp_path, "train.py", SEEDED, STEPS=3)
    if (
        shutil.which("chattr") is None
        or subprocess.run(["chattr", "+i", folder], check=False, capture_output=True).returncode
    ):
        pytest.skip("chattr +i is not possible here")
    try:
        result = samebits("verify", "--keep", folder / "records", script, cwd=tmp_path)
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)

    assert_refused(result, "fixed", slug="record-unwritable")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", place]
    if shutil.which("mount") is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a file system cannot be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_full_disk_does_not_spoil_the_run(tmp_path, small_disk):
    """The script ends as ever; one line tells; what was committed is readable."""
    script = write(tmp_path, "train.py", SEEDED, STEPS=3000)

    result = samebits("run", "--record", small_disk / "a.sbr", script, cwd=tmp_path)

    assert (result.returncode, result.stdout[:5]) == (0, "loss ")
    assert len(complaints(result.stderr)) == 1
    assert "could not be written any further (No space left on device)" in result.stderr
    assert samebits("show", small_disk / "a.sbr", cwd=tmp_path).returncode == 0


def wait_for_steps(folder, process, least: int = 100) -> None:
    """Wait until the script has made some steps; a step is committed 0.2 s later."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(OSError, ValueError):
            if int((folder / "steps").read_text()) >= least:
                return
        time.sleep(0.05)
    pytest.fail("the script made no steps")


def test_ctrl_c(tmp_path):
    """One line, exit status 130, the record kept."""
    script = write(tmp_path, "train.py", ENDLESS)
    process = start("verify", "--keep", "kept", script, cwd=tmp_path)
    wait_for_steps(tmp_path, process)

    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=30)

    assert process.returncode == 130, stderr
    assert complaints(stderr) == ["samebits: interrupted; what was recorded so far is kept"]
    shown = samebits("show", "--json", "kept/run-1.sbr", cwd=tmp_path)
    assert json.loads(shown.stdout)["events"]["step"] >= 5


WAITING = """
    import sys, time
    if "verify" not in sys.orig_argv:  # the process of the script
        open("waits", "w").close()
        time.sleep(60)
"""
INTERRUPTED = """
    import os, signal, sys
    from samebits.cli import report
    from samebits.cli.main import main
    report.write_page = lambda *_: os.kill(os.getpid(), signal.SIGINT)
    sys.exit(main())
"""


def test_ctrl_c_before_anything_is_recorded(tmp_path):
    """Nothing is said to be kept, and no empty folder is left."""
    write(tmp_path, "sitecustomize.py", WAITING)
    script = write(tmp_path, "train.py", ENDLESS)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    process = start("verify", script, cwd=tmp_path, PYTHONPATH=path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "waits").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)

    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=30)

    assert process.returncode == 130, stderr
    assert complaints(stderr) == ["samebits: interrupted"]
    assert [path.name for path in (tmp_path / ".samebits").iterdir()] == [".gitignore"]


def test_ctrl_c_of_what_records_nothing(records):
    """A page is no recording."""
    write(records, "interrupted.py", INTERRUPTED)
    command = [sys.executable, "interrupted.py", "report", "a.sbr"]
    done = subprocess.run(
        command, cwd=records, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (130, "samebits: interrupted\n")


def child_of(pid: int) -> int:
    """The process that runs the script."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True
    )
    return int(listed.stdout.split()[0])


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_sigkill_of_run(tmp_path):
    """The status is passed through; what was committed is readable."""
    script = write(tmp_path, "train.py", ENDLESS)
    process = start("run", "--record", "a.sbr", script, cwd=tmp_path)
    wait_for_steps(tmp_path, process, least=random.Random().randrange(100, 200))

    process.kill()  # the script is the process that `samebits run` was
    process.communicate(timeout=30)

    assert process.returncode == -signal.SIGKILL
    shown = json.loads(samebits("show", "--json", "a.sbr", cwd=tmp_path).stdout)
    assert (shown["status"], shown["failure"]) == ("running", "")  # nobody is left to say more
    assert shown["events"]["step"] >= 5
    assert shown["environment"]["taken"] == "at the start of the run"
    assert shown["environment"]["machine"]["cpus"] >= 1
    assert shown["environment"]["torch"]["version"] == shown["torch"] != ""
    assert shown["environment"]["torch"]["capability"]  # read at the first step
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sbr", "a.sbr-log", "steps", "train.py"]


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_sigkill_during_verify(tmp_path):
    """Not judged, and why."""
    script = write(tmp_path, "train.py", ENDLESS)
    process = start("verify", "--keep", "kept", script.name, cwd=tmp_path)
    wait_for_steps(tmp_path, process)
    os.kill(child_of(process.pid), signal.SIGKILL)

    stdout, _ = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "not judged: run 1 of train.py did not end: killed by SIGKILL" in " ".join(stdout.split())


def test_one_switch_with_two_values_is_refused(tmp_path):
    write(tmp_path, "train.py", "print('ran')")
    twice = samebits("run", "--seed", 3, "--set", "threads=1", "--set", "threads=2", "train.py", cwd=tmp_path)
    assert_refused(twice, "threads", "1 and 2", slug="usage")
    left = samebits("run", "--seed", 3, "--set", "threads=1", "--leave", "threads", "train.py", cwd=tmp_path)
    assert_refused(left, "threads", "1 and leave", slug="usage")
    assert "ran" not in twice.stdout + left.stdout


def test_a_rank_that_is_none_is_refused_before_a_record_is_begun(tmp_path):
    write(tmp_path, "train.py", "print('ran')")
    words = ("--per-rank-seeds", "--record", "new.sbr", "train.py")
    assert_refused(
        samebits("run", "--seed", 3, *words, cwd=tmp_path, RANK="abc"), "RANK", "'abc'", slug="rank"
    )
    assert not (tmp_path / "new.sbr").exists()


def test_a_torch_of_the_users_own_is_none_of_our_business(tmp_path):
    write(tmp_path, "torch.py", "print('my torch')")
    write(tmp_path, "train.py", "import torch; print(sorted(vars(torch))[-1])")
    result = samebits("run", "--seed", 3, "train.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "my torch\n__spec__\n"), result.stderr


@pytest.mark.parametrize("command", ["run", "verify", "resume-check --resume-args=-r"])
def test_a_digest_back_end_that_does_not_exist_is_refused_before_the_script_starts(tmp_path, command):
    write(tmp_path, "train.py", "open('started', 'w').close()\nimport torch\n")
    done = samebits(*command.split(), "train.py", cwd=tmp_path, SAMEBITS_DIGEST_BACKEND="wrong")
    assert done.returncode == 2
    first, *pointer = done.stderr.splitlines()
    assert first.startswith("samebits: SAMEBITS_DIGEST_BACKEND=wrong asks for a digest back end")
    assert len(pointer) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("command", ["verify", "resume-check --resume-args=-r"])
def test_a_file_given_as_the_folder_of_records_is_named(tmp_path, command):
    write(tmp_path, "train.py", "print(1)\n")
    write(tmp_path, "taken", "")
    done = samebits(*command.split(), "--keep", "taken", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "--keep taken is not a folder" in done.stderr


def test_a_folder_without_a_spread_is_not_taken_for_a_script(tmp_path):
    done = samebits("spread", ".", "--against", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "spread-missing" in done.stderr
    assert "script" not in done.stderr.splitlines()[0]
