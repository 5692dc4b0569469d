"""No secret of a command, an exception or an environment is in any file that samebits leaves."""

from __future__ import annotations

import json
import subprocess
import textwrap
from typing import TYPE_CHECKING

import pytest
from cli_support import samebits, write
from secret_support import core, keys

if TYPE_CHECKING:
    from pathlib import Path

FAILS = """
    import os, sys
    import torch
    weight = torch.zeros(2, requires_grad=True)
    weight.sum().backward()
    assert sys.argv[1:] == ARGUMENTS, sys.argv
    raise ValueError(f"no login as {sys.argv[2]} at {sys.argv[3]} with {os.environ['MY_API_KEY']}")
"""
TRAINS = """
    import sys
    import torch
    torch.manual_seed(0)
    weight = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    (weight.square().sum() + len(sys.argv)).backward()
    optimizer.step()
    print("arguments", *sys.argv[1:])
"""
SECRETS = (
    "hunter2-correct",
    "https://me:battery-staple@example.com",
    "environment-secret",
    "hf_" + "a1B2" * 8,
)
ARGUMENTS = ["--password", SECRETS[0], SECRETS[1], f"--key={SECRETS[3]}"]


def stored(folder: Path) -> bytes:
    """All that lies in the folder of records."""
    files = [path for path in (folder / ".samebits").rglob("*") if path.is_file()]
    assert files
    return b"".join(path.name.encode() + path.read_bytes() for path in files)


def check_masked(data: bytes) -> None:
    for word in ("hunter2", "battery", "environment-secret", "a1B2a1B2"):
        assert word.encode() not in data


@pytest.mark.parametrize("command", ["run", "verify"])
def test_a_failing_script(tmp_path, command):
    """The script gets the real arguments, and its own message is its own; the record has neither."""
    script = write(tmp_path, "train.py", FAILS, ARGUMENTS=ARGUMENTS)
    result = samebits(command, script, *ARGUMENTS, cwd=tmp_path, MY_API_KEY="environment-secret")
    assert "ValueError: no login as hunter2-correct" in result.stderr
    data = stored(tmp_path)
    check_masked(data)
    assert b"no login as ***" in data
    assert b'"--password", "***"' in data


def test_verify_runs_with_the_real_arguments(tmp_path):
    script = write(tmp_path, "train.py", TRAINS)
    result = samebits("verify", "--json", script, *ARGUMENTS, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"arguments --password {SECRETS[0]}" in result.stderr
    check_masked(stored(tmp_path))


def test_compare_says_what_it_cannot_see(tmp_path):
    """Another token is no other command; another argument is."""
    script = write(tmp_path, "train.py", TRAINS)
    for name, words in (
        ("a", ["--token", "first-one"]),
        ("b", ["--token", "second-1"]),
        ("c", ["--rate", "0.5"]),
    ):
        assert samebits("run", "--record", f"{name}.sbr", script, *words, cwd=tmp_path).returncode == 0
    found = samebits("compare", "--json", "a.sbr", "b.sbr", cwd=tmp_path)
    assert found.returncode == 0, found.stdout
    assert any("secrets in arguments are masked" in note for note in json.loads(found.stdout)["notes"])
    other = samebits("compare", "--json", "a.sbr", "c.sbr", cwd=tmp_path)
    assert other.returncode == 2
    assert "different arguments, `--token ***` and `--rate 0.5`" in json.loads(other.stdout)["reason"]


@pytest.mark.parametrize("fails", [False, True])
def test_spread_says_and_keeps_none(tmp_path, fails):
    """What the runs print is their own, and lies beside the results."""
    script = write(tmp_path, "train.py", FAILS if fails else TRAINS, ARGUMENTS=ARGUMENTS)
    words = ["spread", "--seeds", "0,1", "--html", "page.html", script, *ARGUMENTS]
    outputs = [
        samebits(*words[:1], *more, *words[1:], cwd=tmp_path, MY_API_KEY="environment-secret")
        for more in ([], ["--json"])
    ]
    assert {each.returncode for each in outputs} == {2 if fails else 0}, outputs[0].stderr
    said = "".join(line for each in outputs for line in (each.stdout, each.stderr))
    written = [
        path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".py", ".out", ".err")
    ]
    check_masked(said.encode() + b"".join(path.read_bytes() for path in written))
    assert fails or "page.html" in {path.name for path in written}


@pytest.mark.parametrize("command", ["run", "verify"])
def test_no_arguments(tmp_path, command):
    script = write(tmp_path, "train.py", TRAINS)
    result = samebits(command, "--no-arguments", script, "--name", "Lovelace", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    data = stored(tmp_path)
    assert b"Lovelace" not in data
    assert b"--name" not in data
    assert b"(arguments not recorded)" in data


def test_compare_with_a_record_without_arguments(tmp_path):
    script = write(tmp_path, "train.py", TRAINS)
    for name, options in (("a", ["--no-arguments"]), ("b", [])):
        assert samebits("run", *options, "--record", f"{name}.sbr", script, "x", cwd=tmp_path).returncode == 0
    found = samebits("compare", "--json", "a.sbr", "b.sbr", cwd=tmp_path)
    assert found.returncode == 0, found.stdout
    assert any("arguments were not recorded" in note for note in json.loads(found.stdout)["notes"])


def test_what_is_made_of_entropy_is_not_stored(tmp_path):
    """Such a value may be a key, and `uuid1` has the address of the machine."""
    script = """
        import secrets, uuid, torch
        made = [secrets.token_hex(8), secrets.token_urlsafe(8), str(uuid.uuid1()), str(uuid.uuid4())]
        print(*made)
    """
    write(tmp_path, "train.py", script)
    done = samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path)
    stored = (tmp_path / "a.sbr").read_bytes()
    assert len(done.stdout.split()) == 4
    for value in done.stdout.split():
        assert value.encode() not in stored


def test_an_uncommitted_change_is_kept_without_its_secrets(tmp_path):
    """Nor do they come out of a rebuilt folder; a value known from the environment is masked by itself."""
    helper = 'password = "hunter2-correct"\nurl = "https://me:battery-staple@example.com"\n'
    helper += f'other = "environment-secret"\nkey = "{SECRETS[3]}"\n'
    helper += 'passwords = ("first-one1", "hunter2-correct")\ncookies = {"session": "battery-staple1"}\n'
    settings = "password: correct hunter2\nother_password: |\n  hunter2-correct\n"
    settings += "env:\n- name: DB_PASSWORD\n  value: battery staple\n"
    write(tmp_path, "train.py", "import helper\n" + textwrap.dedent(TRAINS))
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "settings.yaml").write_text("lr: 0.1\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    (tmp_path / "helper.py").write_text(helper)
    (tmp_path / "settings.yaml").write_text(settings)
    (tmp_path / "untracked.py").write_text(helper)
    (tmp_path / "train.py").write_text("import untracked\n" + (tmp_path / "train.py").read_text())
    done = samebits("run", "train.py", cwd=tmp_path, MY_API_KEY="environment-secret")
    assert done.returncode == 0, done.stderr
    check_masked(stored(tmp_path))
    again = samebits("rebuild", ".samebits/train-1.sbr", "--into", "again", cwd=tmp_path)
    assert "missing: secrets" in again.stdout, again.stderr
    files = [path for path in (tmp_path / "again").rglob("*") if path.is_file()]
    assert {"changes.patch", "run.sh"} < {path.name for path in files}
    check_masked(b"".join(path.read_bytes() for path in files))


PLANTED = """
    import sys
    import torch
    import samebits
    import helper
    torch.manual_seed(0)
    names = sys.argv[1:]
    for number, name in enumerate(names):
        samebits.tap(f"{name}", torch.ones(2))
        if "/" not in name and ":" not in name:
            open(f"data/{name}.csv").read()
    weight = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    (weight.square().sum() + helper.NUMBER * weight.sum()).backward()
    optimizer.step()
    if helper.NUMBER > 2:
        raise ValueError(" ".join(names))
"""


def test_no_key_of_any_issuer_is_in_anything_that_a_run_leaves(tmp_path):
    """Among arguments, in a variable, names of data and taps, a commit, changed lines, an exception."""
    planted = keys()
    names = list(planted.values())
    project, away = tmp_path / "project", tmp_path / "out"
    (project / "data").mkdir(parents=True)
    away.mkdir()
    write(project, "train.py", PLANTED)
    (project / "helper.py").write_text("NUMBER = 1\n")
    for name in names:
        if "/" not in name and ":" not in name:
            (project / "data" / f"{name}.csv").write_text("1\n")
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "train.py", "helper.py"], ["commit", "-qm", " ".join(names)]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    variables = {"CUDA_NOTE": " ".join(names), "OMP_NOTE": names[0]}
    lines = "".join(f"    x{number} = load({name!r})\n" for number, name in enumerate(names))
    outputs = []

    def done(*words, status=0):
        result = samebits(*words, cwd=project, **variables)
        assert result.returncode == status, result.stdout + result.stderr
        outputs.append(result.stdout)
        return result

    lock = ["lock", "--lock", str(away / "l.lock"), "train.py"]
    done(*lock, *names, status=2)  # a lock with an argument that is masked could not be checked
    done(*lock)
    (project / "helper.py").write_text(f"NUMBER = 2\ndef unused():\n{lines}")
    for name in "ab":
        done("run", "--record", str(away / f"{name}.sbr"), "train.py", *names)
    a, b = str(away / "a.sbr"), str(away / "b.sbr")
    done("run", "--record", str(away / "plain.sbr"), "train.py")
    reports = ["--junit", str(away / "j.xml"), "--sarif", str(away / "s.sarif")]
    outputs += [done("check", "--lock", str(away / "l.lock"), *reports, status=1).stderr]
    done("verify", "--html", str(away / "verify.html"), "train.py", *names)
    (project / "helper.py").write_text("NUMBER = 3\n")
    done("run", "--record", str(away / "failed.sbr"), "train.py", *names, status=1)
    (project / "helper.py").write_text("NUMBER = 2\n")
    done("report", a, b, "--output", str(away / "compare.html"))
    done("report", a, "--output", str(away / "report.html"))
    for words in (
        ("compare", "--json", a, b),
        ("show", a),
        ("show", "--json", a),
        ("diff", a, b),
        ("diff", "--json", a, b),
    ):
        outputs.append(samebits(*words, cwd=project, **variables).stdout)
    rebuilt = done("rebuild", str(away / "plain.sbr"), "--into", str(away / "again"))
    assert "missing: secrets" in rebuilt.stdout
    files = [path for path in away.rglob("*") if path.is_file() and path.name != "train.py"]
    written = {"a.sbr", "failed.sbr", "l.lock", "report.html", "compare.html", "changes.patch"}
    assert written | {"j.xml", "s.sarif", "verify.html"} <= {path.name for path in files}
    kept = b"".join(path.name.encode() + path.read_bytes() for path in files) + "".join(outputs).encode()
    assert [name for name, key in planted.items() if core(key).encode() in kept] == []
