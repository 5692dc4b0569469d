"""`samebits lock` and `samebits check` of a lock file, in repositories with real histories."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

MODEL = """\
import torch

def make():
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.SiLU(), torch.nn.Linear(32, 1))
"""
TRAIN = """\
import torch
from model import make

model = make()
with torch.no_grad():
    for p in model.parameters():
        p.copy_((torch.arange(p.numel()) * 7919 % 1009).float().reshape(p.shape) / 1009 - 0.5)
x = (torch.arange(512) * 31 % 97).float().reshape(64, 8) / 97
y = x.sum(1, keepdim=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
for step in range(6):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def git(folder: Path, *words: str) -> str:
    """Run git, as somebody."""
    names = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    command = ["git", "-C", str(folder), *names, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def commit(folder: Path, message: str, **texts: str) -> None:
    """Write modules, and commit everything."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def samebits(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-m", "samebits", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def checked(folder: Path, *words: str, **variables: str) -> dict:
    """Return the only entry of `check --json`."""
    done = samebits(folder, "check", "--json", *words, **variables)
    assert done.returncode in (0, 1, 2), done.stderr
    (entry,) = json.loads(done.stdout)["entries"]
    assert done.returncode == {"identical": 0, "different": 1, "not_judged": 2}[entry["verdict"]]
    return entry


@pytest.fixture(scope="module")
def locked_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a lock, which each test copies."""
    folder = tmp_path_factory.mktemp("locked")
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text("__pycache__/\nuntracked.txt\n")
    commit(folder, "the first code", train=TRAIN, model=MODEL)
    done = samebits(folder, "lock", "--seed", "0", "train.py")
    assert done.returncode == 0, done.stderr
    commit(folder, "a lock")
    return folder


@pytest.fixture
def project(locked_project: Path, tmp_path: Path) -> Path:
    """A copy of the repository, elsewhere."""
    return Path(shutil.copytree(locked_project, tmp_path / "project", symlinks=True))


def test_the_lock_is_small_text_and_holds_in_another_folder(project):
    """Digests and values of each step, the command and the code; no path of the machine."""
    text = (project / "samebits.lock").read_text()
    assert re.search(r'^0 = "[0-9a-f]{32} - loss=[\d.]+"$', text, re.MULTILINE), text
    assert re.search(r'^end = "[0-9a-f]{32} [0-9a-f]{32} read=[\d.]+"$', text, re.MULTILINE)
    assert 'command = "train.py"' in text
    assert re.search(r'^model = "[0-9a-f]{16}"$', text, re.MULTILINE)
    assert len(text) < 4000
    assert str(Path.home()) not in text
    assert "/tmp" not in text  # noqa: S108 - that it is not there
    assert checked(project)["verdict"] == "identical"


def test_the_records_of_the_runs_stay_out_of_git(project):
    """What is committed beside the code is the lock and the record of its operations."""
    assert git(project, "ls-files", "--", ".samebits") == ""
    assert git(project, "ls-files", "--", "samebits.lock", "samebits.lock.d").split()


def test_a_change_without_effect_on_bits_matches(project):
    """Comments, other names, a line more: the lock holds."""
    renamed = TRAIN.replace("model", "network").replace("from network import", "from model import")
    commit(project, "other names", train="# a comment\n\n" + renamed)
    assert checked(project)["verdict"] == "identical"


def test_a_changed_line_among_several_commits_is_named(project):
    """The commit and the line, tried; a comment in the same commit is not blamed, nor are later commits."""
    commit(project, "a comment", model="# about\n" + MODEL)
    slower = TRAIN.replace("lr=0.125", "lr=0.0625").replace("x = (torch", "# inputs\nx = (torch")
    commit(project, "train more slowly", train=slower)
    commit(project, "print less", train=slower.replace("print(step, loss.item())", "loss.item()"))
    entry = checked(project)
    assert (entry["verdict"], entry["blame"], entry["proof"]) == ("different", "change", "tried")
    assert entry["change"]["commit"]["subject"] == "train more slowly"
    assert entry["change"]["proof"] == "tried"
    (hunk,) = entry["change"]["hunks"]
    assert (hunk["file"], hunk["line"]) == ("train.py", 11)
    assert "lr=0.0625" in hunk["after"][0]
    assert entry["step"] == 0


def test_an_inserted_line_above_does_not_move_the_place_where_it_begins(project):
    """The operation whose bits differ first, at its line here and in the code of the lock."""
    slower = TRAIN.replace("lr=0.125", "lr=0.0625").replace("\nmodel =", "unused = 1\n\n\nmodel =")
    commit(project, "train more slowly, and a name", train=slower)
    done = samebits(project, "check")
    words = " ".join(done.stdout.split())
    assert "begins at step 0, aten::add_.Tensor" in words
    assert "train.py:17; with the code of the lock train.py:15" in words
    assert "a number" not in words
    assert "+ unused" not in words


def test_a_change_that_is_not_committed_is_named(project):
    """In a module, and with the operation at which the bits part."""
    (project / "model.py").write_text(MODEL.replace("SiLU()", "Tanh()"))
    entry = checked(project)
    assert (entry["blame"], entry["change"]["commit"]) == ("change", None)
    assert [(hunk["file"], hunk["line"]) for hunk in entry["change"]["hunks"]] == [("model.py", 4)]
    assert entry["operation"]["op"] in ("aten::silu.default", "aten::tanh.default")
    git(project, "diff", "--quiet", "HEAD", "--", "train.py")  # nothing of the user's was touched


def test_a_later_step_is_where_it_begins(project):
    """The steps before the change took effect match."""
    later = TRAIN.replace(
        "    optimizer.zero_grad()\n",
        "    if step == 4:\n        optimizer.param_groups[0]['lr'] = 0.1\n    optimizer.zero_grad()\n",
    )
    commit(project, "a schedule", train=later)
    entry = checked(project)
    assert (entry["step"], entry["blame"]) == (4, "change")


def test_a_data_file_in_the_repository_is_a_change_like_any_other(project):
    """Its commit is named, and its line."""
    reads = TRAIN.replace("lr=0.125", "lr=float(open('settings.txt').read())")
    (project / "settings.txt").write_text("0.125\n")
    commit(project, "settings in a file", train=reads)
    assert samebits(project, "check", "--update").returncode == 0
    commit(project, "a new lock")
    (project / "settings.txt").write_text("0.25\n")
    commit(project, "faster")
    entry = checked(project)
    assert (entry["blame"], entry["change"]["commit"]["subject"]) == ("change", "faster")
    assert [(hunk["file"], hunk["line"]) for hunk in entry["change"]["hunks"]] == [("settings.txt", 1)]


def test_data_that_git_does_not_keep_is_blamed_as_data(project):
    """The old code gives other bits too, because it reads the new data."""
    reads = TRAIN.replace("lr=0.125", "lr=float(open('untracked.txt').read())")
    (project / "untracked.txt").write_text("0.125\n")
    commit(project, "settings in a file", train=reads)
    assert samebits(project, "check", "--update").returncode == 0
    commit(project, "a new lock")
    (project / "untracked.txt").write_text("0.25\n")
    entry = checked(project)
    assert entry["blame"] == "data"
    assert any("untracked.txt" in line for line in entry["inputs"])


@pytest.mark.parametrize(
    ("draw", "cause"),
    [("torch.randn(1, generator=torch.Generator().manual_seed(__import__('os').getpid()))", "environment"),
     ("__import__('time').time() % 1", "wall-clock")],
)  # fmt: skip
def test_bits_that_are_chance_are_told_as_nondeterminism(project, draw, cause):
    """With the cause that `verify` finds."""
    commit(
        project,
        "noise",
        train=TRAIN.replace("optimizer.step()", f"model[0].bias.grad += {draw}\n    optimizer.step()"),
    )
    entry = checked(project)
    assert (entry["blame"], entry["proof"]) == ("nondeterminism", "tried")
    assert entry["operation"]["cause"] == cause


def test_another_instruction_set_is_drift_of_the_platform(project):
    """The setting was tried, and the operation is named with its distance."""
    here = checked(project)
    assert here["verdict"] == "identical"
    entry = checked(project, ATEN_CPU_CAPABILITY="default")
    if entry["verdict"] == "identical":
        pytest.skip("this processor has no other instruction set")
    assert (entry["blame"], entry["proof"]) == ("platform", "tried")
    assert entry["settings"] == {"ATEN_CPU_CAPABILITY": None}
    assert entry["operation"]["op"] == "aten::silu.default"
    assert entry["operation"]["difference"]["max_ulp"] >= 1
    assert entry["operation"]["inputs_equal"] is True


HIDDEN = """\
import ctypes
import struct

def hidden():
    libc = ctypes.CDLL(None)
    file, buffer = libc.open(b"hidden.bin", 0), ctypes.create_string_buffer(8)
    libc.read(file, buffer, 8)
    libc.close(file)
    return buffer.raw

"""
HIDDEN_READS = {
    "set_": "torch.empty(0).set_(torch.frombuffer(bytearray(hidden()), dtype=torch.float32)"
    ".untyped_storage(), 0, (2,)).mean()",
    "lift_fresh": "torch.tensor(struct.unpack('ff', hidden())).mean()",
    "mul": "struct.unpack('ff', hidden())[0]",
}


@pytest.mark.parametrize("op", HIDDEN_READS)
def test_a_file_that_no_record_sees_is_no_drift(op, project):
    """Though a setting differs, which was tried; and though a line was changed, which is shown.

    The operation at which its values come in is named, with its line.
    """
    train = HIDDEN + TRAIN.replace("/ 97\ny", f"/ 97\nx = x * {HIDDEN_READS[op]}\ny")
    (project / ".gitignore").write_text("__pycache__/\n.samebits/\nhidden.bin\n")
    (project / "hidden.bin").write_bytes(struct.pack("ff", 1.0, 3.0))
    commit(project, "a file that no record sees", train=train)
    assert samebits(project, "check", "--update").returncode == 0
    commit(project, "a new lock")
    (project / "hidden.bin").write_bytes(struct.pack("ff", 1.25, 3.5))

    entry = checked(project, OMP_NUM_THREADS="2")
    assert (entry["blame"], entry["proof"], entry["begins"]) == ("unrecorded", "tried", "entered")
    assert entry["tried"]["OMP_NUM_THREADS"] == "1"
    assert entry["operation"]["op"].startswith(f"aten::{op}.")
    assert entry["operation"]["site"]["line"] == train.splitlines().index(f"x = x * {HIDDEN_READS[op]}") + 1
    assert "An input that the lock does not hold is different" in entry["why"]
    if op == "set_":
        commit(project, "train more slowly", train=train.replace("lr=0.125", "lr=0.0625"))
        both = checked(project, OMP_NUM_THREADS="2")
        assert (both["blame"], both["begins"]) == ("change-and-unrecorded", "entered")
        words = " ".join(samebits(project, "check").stdout.split())
        assert "train: your change, and something that the lock does not hold: the code differs" in words
        assert "the code of the lock does not give its bits here either" in words
        assert "code of train.py:" in words
        assert "comes in at step 0, aten::set_" in words


def install(shelf: Path, version: str, act: str) -> None:
    """Install a release of a package as pip does, in place of an earlier one."""
    for old in shelf.glob("kernels*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    (shelf / "kernels.py").write_text(f"import torch\n\ndef act(h):\n    return {act}\n")
    facts = shelf / f"kernels-{version}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kernels\nVersion: {version}\n")
    (facts / "RECORD").write_text(f"kernels.py,,\n{facts.name}/METADATA,,\n")


def test_an_operation_of_another_machine_is_named_by_the_record_beside_the_lock(project):
    """What cannot be set here: a package of the environment that computes otherwise."""
    shelf = project.parent / "site-packages"
    shelf.mkdir()
    install(shelf, "1.0", "torch.tanh(h * 0.5) * h")
    own = MODEL.replace(
        "import torch\n",
        "import torch\nimport kernels\n\nclass Act(torch.nn.Module):\n"
        "    def forward(self, h):\n        return kernels.act(h)\n",
    )
    commit(project, "kernels", model=own.replace("torch.nn.SiLU()", "Act()"))
    assert samebits(project, "check", "--update", PYTHONPATH=str(shelf)).returncode == 0
    commit(project, "a new lock")
    assert checked(project, PYTHONPATH=str(shelf))["verdict"] == "identical"
    install(shelf, "2.0", "torch.tanh(0.5 * h + 1e-7) * h")
    entry = checked(project, PYTHONPATH=str(shelf))
    assert (entry["blame"], entry["proof"]) == ("platform", "inferred")
    assert any("kernels" in line for line in entry["platform"])
    assert entry["operation"]["op"].startswith(("aten::add", "aten::mul"))


def test_old_code_that_gives_other_bits_here_too_is_both(project):
    """The instruction set and the code."""
    if checked(project, ATEN_CPU_CAPABILITY="default")["verdict"] == "identical":
        pytest.skip("this processor has no other instruction set")
    commit(project, "train more slowly", train=TRAIN.replace("lr=0.125", "lr=0.0625"))
    entry = checked(project, ATEN_CPU_CAPABILITY="default")
    assert entry["blame"] == "change-and-platform"
    assert entry["settings"] == {"ATEN_CPU_CAPABILITY": None}
    assert entry["operation"]["op"] == "aten::silu.default"  # of the platform, not of the change


def test_a_repository_of_another_user_is_told(project):
    """The old code cannot be run; the reason is not that there is no repository."""
    (project / "train.py").write_text(TRAIN.replace("lr=0.125", "lr=0.0625"))
    entry = checked(project, GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
    assert (entry["blame"], entry["proof"], entry["obstacles"]) == ("change", "inferred", ["distrusted"])


def test_without_git_the_code_is_blamed_only_if_nothing_else_differs(project):
    """Where both differ, it is not decided, and the reason is told."""
    shutil.rmtree(project / ".git")
    (project / "train.py").write_text(TRAIN.replace("lr=0.125", "lr=0.0625"))
    entry = checked(project)
    assert (entry["blame"], entry["proof"], entry["obstacles"]) == ("change", "inferred", ["no-git"])
    if checked(project, "--quick", ATEN_CPU_CAPABILITY="default")["verdict"] == "different":
        both = checked(project, ATEN_CPU_CAPABILITY="default")
        assert both["blame"] in ("undecided", "change")


def test_a_history_that_was_not_fetched_is_told(project, tmp_path):
    """As `actions/checkout` leaves it by default."""
    commit(project, "train more slowly", train=TRAIN.replace("lr=0.125", "lr=0.0625"))
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", project.as_uri(), str(shallow))
    entry = checked(shallow)
    assert (entry["blame"], entry["obstacles"]) == ("change", ["shallow"])
    text = samebits(shallow, "check").stdout
    assert "fetch-depth: 0" in " ".join(text.split())


def test_the_text_names_the_line_and_what_to_do(project):
    """As a user sees it."""
    commit(project, "train more slowly", train=TRAIN.replace("lr=0.125", "lr=0.0625"))
    done = samebits(project, "check")
    assert done.returncode == 1
    words = " ".join(done.stdout.split())
    assert "train: your change:" in words
    assert "train more slowly" in words
    assert "+ optimizer = torch.optim.SGD(model.parameters(), lr=0.0625)" in words
    assert "samebits check --update train" in words
    assert samebits(project, "check", "--update", "train").returncode == 0
    assert checked(project)["verdict"] == "identical"


def test_reports_for_machines(project):
    """JUnit with a failure, SARIF with the line; written where a folder is missing, too."""
    commit(project, "train more slowly", train=TRAIN.replace("lr=0.125", "lr=0.0625"))
    done = samebits(project, "check", "--junit", "out/report.xml", "--sarif", "out/report.sarif")
    assert done.returncode == 1, done.stderr
    suites = ET.parse(project / "out/report.xml").getroot()  # noqa: S314 - our own file
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("1", "1", "0")
    failure = suites.find("./testsuite/testcase[@name='train']/failure")
    assert failure.get("type") == "change"
    assert "lr=0.0625" in failure.text
    (run,) = json.loads((project / "out/report.sarif").read_text())["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("train.py", 10)
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}


@pytest.mark.skipif(sys.platform != "linux", reason="file names elsewhere are Unicode")
def test_a_changed_file_may_have_any_name(project):
    """Every report tells it, and the verdict is printed."""
    name = os.fsdecode(b"caf\xe9.txt")
    train = TRAIN.replace("lr=0.125", "lr=float(open(b'caf\\xe9.txt').read())")
    (project / name).write_text("0.125\n")
    commit(project, "a rate in a file", train=train)
    assert samebits(project, "check", "--update", "train").returncode == 0
    commit(project, "a lock")
    (project / name).write_text("0.0625\n")
    commit(project, "train more slowly")
    done = samebits(project, "check", "--junit", "report.xml", "--sarif", "report.sarif")

    assert done.returncode == 1, done.stderr
    assert "DIFFERENT" in done.stdout
    (run,) = json.loads((project / "report.sarif").read_text())["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "caf%E9.txt"
    assert "caf\\udce9.txt" in (project / "report.xml").read_text()


def test_the_verdict_is_printed_though_no_report_can_be_written(project):
    """A folder that goes away while the script runs."""
    (project / "out").mkdir()
    commit(
        project,
        "no folder",
        train=TRAIN + "\nimport os\nos.path.isdir('out') and os.rmdir('out')\nopen('out', 'w')\n",
    )
    done = samebits(project, "check", "--quick", "--sarif", "out/report.sarif")

    assert done.returncode == 2, done.stderr
    assert "cannot write the report" in done.stderr
    assert "train  identical   6 steps" in done.stdout


def test_a_run_that_fails_is_not_judged(project):
    """Its error is told."""
    commit(project, "a bug", train=TRAIN.replace("lr=0.125", "lr=nothing"))
    entry = checked(project)
    assert (entry["verdict"], entry["slug"]) == ("not_judged", "lock-run-failed")
    assert "nothing" in entry["reason"]


def test_what_does_not_repeat_is_not_locked(tmp_path):
    """There is nothing to lock."""
    (tmp_path / "train.py").write_text(
        TRAIN.replace("from model import make", MODEL).replace("0.125", "__import__('time').time() % 1")
    )
    done = samebits(tmp_path, "lock", "train.py")
    assert done.returncode == 2
    assert "two runs of train.py gave different bits" in done.stderr
    assert not (tmp_path / "samebits.lock").exists()


def _edit(text: str) -> str:
    return re.sub(
        r'^0 = "(.)', lambda match: f'0 = "{"0" if match[1] != "0" else "1"}', text, flags=re.MULTILINE
    )


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        (lambda folder: (folder / "samebits.lock").unlink(), "lock-missing"),
        (lambda folder: _rewrite(folder, _edit), "lock-edited"),
        (lambda folder: _rewrite(folder, lambda text: text.replace("= 1", "= 2", 1)), "lock-version"),
        (lambda folder: _rewrite(folder, lambda text: text.replace("version = 1", "")), "lock-damaged"),
        (lambda folder: _rewrite(folder, lambda text: text.replace("= 1", "= 0", 1)), "lock-damaged"),
        (lambda folder: _rewrite(folder, lambda text: text.replace("= 1", "= -1", 1)), "lock-damaged"),
        (lambda folder: _rewrite(folder, lambda text: "<<<<<<< HEAD\n" + text), "lock-damaged"),
        (lambda folder: (folder / "samebits.lock").write_bytes(b"\xff\xfe\0"), "lock-damaged"),
        (lambda folder: _rewrite(folder, lambda _: "version = 1\nrun = 3\n"), "lock-damaged"),
        (lambda folder: _rewrite(folder, lambda _: "version = 1\n"), "lock-entry"),
        (lambda folder: _make_a_folder(folder / "samebits.lock"), "lock-unreadable"),
    ],
)  # fmt: skip
def test_a_bad_lock_file_is_one_clear_line(project, change, slug):
    """No traceback, status 2."""
    change(project)
    done = samebits(project, "check")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert f"#{slug}" in done.stderr


def test_a_merge_conflict_is_called_one(project):
    """That is how a lock file is damaged most often."""
    _rewrite(project, lambda text: text.replace("[run.", "<<<<<<< HEAD\n[run.", 1))
    assert "the marks of a merge conflict" in samebits(project, "check").stderr


def test_the_lock_of_another_script_is_told(project):
    """Its script is not there."""
    (project / "train.py").unlink()
    entry = checked(project)
    assert (entry["verdict"], entry["slug"]) == ("not_judged", "lock-script")


def test_the_entry_of_a_script_that_is_gone_is_deleted_by_hand(project):
    """As the message says. Until then no other entry is written again."""
    (project / "other.py").write_text(TRAIN)
    assert samebits(project, "lock", "--seed", "0", "other.py").returncode == 0
    (project / "train.py").unlink()
    path = project / "samebits.lock"
    before = path.read_text()
    done = samebits(project, "check", "--update")
    assert (done.returncode, path.read_text()) == (2, before)
    assert "delete the [run.train] tables" in done.stderr

    tables = before.split("\n[")
    kept = [each for each in tables if not each.startswith(("run.train]", "run.train."))]
    assert len(kept) < len(tables)
    path.write_text("\n[".join(kept))
    done = samebits(project, "check")
    assert done.returncode == 0, done.stderr
    assert "other  identical" in done.stdout


def _make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _rewrite(folder: Path, change) -> None:
    path = folder / "samebits.lock"
    path.write_text(change(path.read_text()))


def test_a_damaged_record_beside_the_lock_does_not_hide_the_verdict(project):
    """Only the operation is missing then."""
    (project / "samebits.lock.d" / "train.sbr").write_bytes(b"nothing")
    commit(project, "train more slowly", train=TRAIN.replace("lr=0.125", "lr=0.0625"))
    assert checked(project)["blame"] == "change"


def test_secrets_and_other_scripts_of_one_name_are_refused(project):
    """A lock is for everybody to read; an entry is not lost."""
    secret = samebits(project, "lock", "--seed", "0", "train.py", "--token", "ghp_" + "a1B2c3D4e5" * 4)
    assert (secret.returncode, "#lock-secret" in secret.stderr) == (2, True)
    (project / "sub").mkdir()
    (project / "sub" / "train.py").write_text(TRAIN)
    other = samebits(project, "lock", "--seed", "0", "sub/train.py")
    assert (other.returncode, "#lock-exists" in other.stderr) == (2, True)


def test_several_entries_and_a_lock_elsewhere(project):
    """Commands run in the folder of the lock; names choose; options that do not go together are refused."""
    done = samebits(
        project, "lock", "--name", "short", "--steps", "2", "--trace", "0", "--seed", "0", "train.py"
    )
    assert done.returncode == 0, done.stderr
    outside = project.parent
    both = samebits(outside, "check", "--json", "--lock", "project/samebits.lock")
    entries = json.loads(both.stdout)["entries"]
    assert [(each["name"], each["verdict"]) for each in entries] == [
        ("short", "identical"),
        ("train", "identical"),
    ]
    assert samebits(project, "check", "short").returncode == 0
    assert samebits(project, "check", "nothing").returncode == 2
    assert "does not go with" in samebits(project, "check", "--record", "a.sbr").stderr


def test_a_portable_lock_holds_with_other_threads_and_instruction_sets(project):
    """Where a plain one would not."""
    done = samebits(project, "lock", "--name", "portable", "--portable", "--seed", "0", "train.py")
    assert done.returncode == 0, done.stderr
    for variables in ({"ATEN_CPU_CAPABILITY": "default"}, {"OMP_NUM_THREADS": "2"}):
        assert checked(project, "portable", **variables)["verdict"] == "identical"


LOADING = """\
import importlib
import pkgutil

import parts

for found in pkgutil.iter_modules(parts.__path__):
    importlib.import_module(f"parts.{found.name}")

"""


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "untracked"])
def test_a_module_that_the_lock_does_not_list_is_a_change(committed, tmp_path):
    """A file that did not exist when the lock was made is found and imported; no listed file changed.

    What git does not track is beside the old code too, so then there is no commit to name.
    """
    folder = tmp_path / "project"
    (folder / "parts").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text(".samebits/\n__pycache__/\n")
    (folder / "parts" / "__init__.py").write_text("scale = 1.0\n")
    train = LOADING + TRAIN.replace("/ 1009 - 0.5", "/ 1009 - 0.5 * parts.scale")
    commit(folder, "the first code", train=train, model=MODEL)
    assert samebits(folder, "lock", "--seed", "0", "train.py").returncode == 0
    commit(folder, "a lock")

    (folder / "parts" / "half.py").write_text("import parts\n\nparts.scale = 0.5\n")
    if committed:
        commit(folder, "half the scale")
    entry = checked(folder)

    assert entry["blame"] == "change"
    assert "parts.half" in json.dumps(entry["inputs"])
    if committed:
        assert entry["change"]["commit"]["subject"] == "half the scale"
        assert [hunk["file"] for hunk in entry["change"]["hunks"]] == ["parts/half.py"]


def test_an_entry_with_the_name_of_its_script(tmp_path):
    """`samebits check train` is the entry, though there is a file `train`."""
    (tmp_path / "train").write_text("import torch\nprint(torch.ones(3).sum().item())\n")
    assert samebits(tmp_path, "lock", "--trace", "0", "train").returncode == 0
    done = samebits(tmp_path, "check", "train")
    assert done.returncode == 0, done.stderr


def test_a_script_that_computes_nothing_is_refused(tmp_path):
    """A lock of it would match whatever it does."""
    (tmp_path / "idle.py").write_text("import torch\n")
    done = samebits(tmp_path, "lock", "--trace", "0", "idle.py")
    assert done.returncode == 2
    assert "lock-empty" in done.stderr


def test_an_argument_that_is_no_text_is_refused(tmp_path):
    """A lock file is text."""
    (tmp_path / "train.py").write_text("import torch\n")
    done = samebits(tmp_path, "lock", "train.py", "caf\udce9.csv")
    assert done.returncode == 2
    assert "is no UTF-8 text" in done.stderr
    assert not (tmp_path / "samebits.lock").exists()


def test_the_old_code_of_a_package_that_is_found_by_an_absolute_path(tmp_path):
    """As of an editable installation: its folder is that of the user's tree, not of the old code."""
    package = tmp_path / "src" / "pkg"
    package.mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitignore").write_text(".samebits/\n__pycache__/\n_version.py\n")
    (package / "_version.py").write_text("version = 1\n")
    (package / "__init__.py").write_text("from ._version import version\n")
    (package / "model.py").write_text(MODEL)
    (package / "train.py").write_text(TRAIN.replace("from model", "from pkg.model"))
    commit(tmp_path, "one")
    found = {"PYTHONPATH": str(tmp_path / "src")}
    done = samebits(tmp_path, "lock", "--seed", "0", "--trace", "0", "-m", "pkg.train", **found)
    assert done.returncode == 0, done.stderr
    commit(tmp_path, "a lock")
    (package / "model.py").write_text(MODEL.replace("SiLU", "GELU"))
    commit(tmp_path, "another activation")
    entry = checked(tmp_path, **found)
    assert (entry["blame"], entry["proof"]) == ("change", "tried")
    assert entry["change"]["commit"]["subject"] == "another activation"
