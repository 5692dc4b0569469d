"""`samebits doctor` in subprocesses, on healthy and on hostile machines."""

import json
import os
import subprocess
import sys

import pytest
from cli_support import complaints, samebits, write

FAKES = {
    "raises": ('raise RuntimeError("boom\\nand more")\n', "RuntimeError: boom and more"),
    "exits": ("import sys\nprint('noise')\nsys.exit(3)\n", "SystemExit: 3"),
    "dies": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "ended by SIGKILL"),
    "leaves": ("import os\nos._exit(7)\n", "ended with status 7"),
    "another": ("__version__ = '9.9'\n", "it is not PyTorch"),
}


def doctor(*words, cwd, **variables):
    """The JSON object and the exit status."""
    result = samebits("doctor", "--json", *words, cwd=cwd, **variables)
    assert complaints(result.stderr) == []
    return json.loads(result.stdout), result.returncode


def subjects(answer, level):
    """What the threats of a level are about."""
    return {threat["subject"] for threat in answer["threats"] if threat["level"] == level}


def test_an_ordinary_machine(tmp_path):
    """It looks at torch as a script would find it, breaks nothing, leaves nothing."""
    answer, status = doctor(cwd=tmp_path, PYTHONHASHSEED="", OMP_DYNAMIC="FALSE")

    assert status == 0
    assert answer["torch"] is not None
    assert subjects(answer, "breaks") == set()
    assert {"PYTHONHASHSEED", "switches", "torch release"} <= subjects(answer, "may break")
    views = {view["name"]: view for view in answer["switches"]}
    assert views["deterministic-algorithms"]["now"] == "off"
    assert views["deterministic-algorithms"]["differs"]
    assert list(tmp_path.iterdir()) == []


def test_variables_of_the_user(tmp_path):
    """What the shell sets is seen, and the status says that it breaks a promise."""
    answer, status = doctor(
        cwd=tmp_path, PYTHONHASHSEED="3", OMP_DYNAMIC="TRUE", ATEN_CPU_CAPABILITY="AVX2", MKL_CBWR="AVX2"
    )

    assert status == 1
    assert subjects(answer, "breaks") == {"OMP_DYNAMIC"}
    assert "ATEN_CPU_CAPABILITY" in subjects(answer, "may break")
    assert "variables" in subjects(answer, "note")
    assert "PYTHONHASHSEED" not in subjects(answer, "may break")


@pytest.mark.parametrize("name", FAKES)
def test_a_torch_that_cannot_be_imported(tmp_path, name):
    """A finding that names the file, not a traceback; also when only another promise is asked for."""
    source, said = FAKES[name]
    (tmp_path / "torch.py").write_text(source)

    answer, status = doctor("--promise", "resumable", cwd=tmp_path)

    assert status == 1
    (threat,) = [threat for threat in answer["threats"] if threat["promise"] == "every"]
    assert said in threat["found"]
    assert threat["remedy"] == f"rename {tmp_path / 'torch.py'}, which hides the installed package"


def test_no_torch_at_all(tmp_path):
    """An environment without torch is told so, by name."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")

    answer, status = doctor("--promise", "proven", cwd=tmp_path, PYTHONPATH=str(blocked))

    assert status == 1
    assert "torch cannot be imported: ModuleNotFoundError" in answer["threats"][0]["found"]


def test_what_runs_before_the_script(tmp_path):
    """A hook that imports torch is named, and so is its file."""
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text("import numpy\n")

    answer, _ = doctor(
        "--promise", "repeatable", cwd=tmp_path, PYTHONPATH=str(tmp_path / "hooks"), PYTHONHASHSEED="0"
    )

    assert "startup" in subjects(answer, "may break")
    assert "sitecustomize" in subjects(answer, "note")


def test_nothing_to_prove_with(tmp_path):
    """No place for records, no git, a digest back end that is not there: found by one look."""
    (tmp_path / ".samebits").write_text("")

    answer, status = doctor(
        "--promise", "proven", cwd=tmp_path, PATH=str(tmp_path), SAMEBITS_DIGEST_BACKEND="abacus"
    )

    assert status == 1
    assert subjects(answer, "breaks") == {"records", "digest"}
    assert "git" in subjects(answer, "note")
    assert any("abacus" in threat["found"] for threat in answer["threats"])


def test_a_script_is_read_and_not_run(tmp_path):
    """Packages that it does not import are named in one note."""
    script = write(tmp_path, "train.py", "raise SystemExit(9)\nimport numpy\n")

    answer, status = doctor(script.name, "--epochs", "3", cwd=tmp_path)

    assert status == 0
    assert {"lightning", "transformers", "accelerate"}.isdisjoint(subjects(answer, "may break"))


def test_a_script_that_is_not_python_source_is_judged_by_all_packages(tmp_path):
    (tmp_path / "broken.py").write_text("import (\n")
    result = samebits("doctor", "--json", "broken.py", cwd=tmp_path)
    assert "broken.py is not Python source, so its imports are not known" in result.stderr
    everything, status = doctor(cwd=tmp_path)
    assert json.loads(result.stdout)["threats"] == everything["threats"]
    assert result.returncode == status


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("nowhere.py",), "script-missing"),
        (("-m", "nowhere_at_all"), "module-missing"),
        (("--promise", "eternal"), "usage"),
        (("--nonsense",), "usage"),
    ],
)
def test_bad_input(tmp_path, words, slug):
    """One line, and status 2."""
    result = samebits("doctor", *words, cwd=tmp_path)

    assert result.returncode == 2
    assert len(complaints(result.stderr)) == 1
    assert f"docs/reference/messages.md#{slug}" in result.stderr
    assert result.stdout == ""


def test_bad_input_with_json(tmp_path):
    """Who reads JSON gets JSON."""
    result = samebits("doctor", "--json", "nowhere.py", cwd=tmp_path)

    assert result.returncode == 2
    assert "nowhere.py" in json.loads(result.stdout)["error"]


def test_a_python_that_cannot_start(tmp_path):
    """Not even Python can be asked: one line that says so."""
    (tmp_path / "hooks").mkdir()
    source = "import os, sys\nif '-c' in sys.orig_argv:\n    os._exit(5)\n"
    (tmp_path / "hooks" / "sitecustomize.py").write_text(source)

    result = samebits("doctor", cwd=tmp_path, PYTHONPATH=str(tmp_path / "hooks"))

    assert result.returncode == 2
    assert "ended with status 5" in result.stderr
    assert "docs/reference/messages.md#doctor-child" in result.stderr


def test_text_fits_and_promises_can_be_chosen(tmp_path):
    """At 80 columns, one promise, with reasons."""
    result = samebits("doctor", "--promise", "portable", "--why", "--switches", cwd=tmp_path, COLUMNS="80")

    assert result.returncode == 0
    assert "portable: " in result.stdout
    assert "repeatable: " not in result.stdout
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_the_command_itself_imports_no_torch(tmp_path):
    """Only the child does; here that fails, as it would in this process."""
    (tmp_path / "torch.py").write_text("raise RuntimeError")
    source = "import sys\nfrom samebits.cli.main import main\nmain(['doctor'])\n"
    command = [sys.executable, "-c", f"{source}assert 'torch' not in sys.modules\n"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
