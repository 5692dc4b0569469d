"""The commands on real scripts, in subprocesses."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent

import pytest
from cli_support import NOISY, SEEDED, complaints, judged, samebits, write


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    """A reproducible script, verified once."""
    folder = tmp_path_factory.mktemp("seeded")
    write(folder, "train.py", SEEDED, STEPS=4)
    return folder, samebits("verify", "--keep", "kept", "train.py", cwd=folder)


def test_verify_identical(seeded):
    """Exit status 0, the verdict, the records kept, and the script's own output untouched."""
    folder, result = seeded

    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == lines[1]
    assert lines[0].startswith("loss ")
    assert lines[2].startswith("identical: 2 runs, 4 steps, ")
    assert sorted(path.name for path in (folder / "kept").iterdir()) == ["run-1.sbr", "run-2.sbr"]


def test_compare_records(seeded):
    """The same verdict from the records."""
    folder, _ = seeded

    text = samebits("compare", "kept/run-1.sbr", "kept/run-2.sbr", cwd=folder)
    result = samebits("compare", "--json", "kept/run-1.sbr", "kept/run-2.sbr", cwd=folder)

    assert text.stdout.startswith("identical: 2 runs, 4 steps, ")
    assert (text.returncode, result.returncode) == (0, 0)
    assert (judged(result)["verdict"], judged(result)["steps"]) == ("identical", 4)
    first, second = judged(result)["final_digest"]
    assert len(first) == 32
    assert first == second


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import torch", "a.py took no step and read no value out of torch: nothing to compare"),
        ("print(1)", "a.py never imported torch: nothing to compare"),
    ],
)
def test_records_with_nothing_to_compare_are_not_judged(tmp_path, source, reason):
    """As `verify` does not judge them; the page says the same."""
    script = write(tmp_path, "a.py", source)
    assert samebits("run", "--record", "a.sbr", script.name, cwd=tmp_path).returncode == 0

    verified = samebits("verify", script.name, cwd=tmp_path)
    compared = samebits("compare", "a.sbr", "a.sbr", cwd=tmp_path)
    found = samebits("compare", "--json", "a.sbr", "a.sbr", cwd=tmp_path)
    samebits("report", "a.sbr", "a.sbr", "--output", "a.html", cwd=tmp_path)

    told = f"not judged: {reason}"
    assert (verified.returncode, compared.returncode, found.returncode) == (2, 2, 2)
    assert told in verified.stdout
    assert compared.stdout.splitlines()[0] == told
    assert (judged(found)["verdict"], judged(found)["reason"]) == ("not_judged", reason)
    page = (tmp_path / "a.html").read_text()
    assert "<strong>not judged</strong>" in page
    assert reason.removeprefix("a.py") in page


def test_records_of_runs_with_other_exit_statuses_are_not_judged(tmp_path):
    """As `verify` does not judge them."""
    for number in (0, 3):
        script = write(tmp_path, "a.py", SEEDED + "    raise SystemExit(END)\n", STEPS=1, END=number)
        samebits("run", "--record", f"{number}.sbr", script.name, cwd=tmp_path)

    compared = samebits("compare", "0.sbr", "3.sbr", cwd=tmp_path)

    assert compared.returncode == 2
    said = "not judged: the bits are equal, but the exit status is 0 in run 1 and 3 in run 2"
    assert compared.stdout.splitlines()[0] == said


def test_show(seeded):
    """A table that fits, and JSON with the same facts."""
    folder, _ = seeded

    text = samebits("show", "kept/run-1.sbr", cwd=folder, COLUMNS="90")
    result = samebits("show", "--json", "kept/run-1.sbr", cwd=folder)

    assert max(map(len, text.stdout.splitlines())) <= 90
    for part in ("train.py", "finished, exit status 0", "SGD.step"):
        assert part in text.stdout
    assert json.loads(result.stdout)["steps"] == 4


def test_show_events(seeded):
    """Chosen by kind and step."""
    folder, _ = seeded

    result = samebits("show", "--json", "--events", "loss,step", "--step", "1", "kept/run-1.sbr", cwd=folder)

    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(event["kind"], event["step"]) for event in events] == [("loss", 1), ("step", 1)]
    assert samebits("show", "--events", "los", "kept/run-1.sbr", cwd=folder).returncode == 2


def test_show_into_a_closed_pipe(seeded):
    """`samebits show | head -1` is no error."""
    import subprocess
    import sys

    folder, _ = seeded
    command = f"{sys.executable} -m samebits show --events all kept/run-1.sbr | head -1"

    result = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S602

    assert (result.stderr, len(result.stdout.splitlines())) == ("", 1)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """A script with one known nondeterminism, verified with JSON."""
    folder = tmp_path_factory.mktemp("noisy")
    script = write(folder, "noisy.py", NOISY)
    return (
        folder,
        script,
        samebits(
            "verify", "--no-interventions", "--json", "noisy.py", "--seed", "1", cwd=folder, timeout=400
        ),
    )


def test_verify_different_names_the_line(noisy):
    """Step, line, cause and size of the difference; exactly one object on stdout."""
    _, script, result = noisy

    assert result.returncode == 1, result.stderr
    found = judged(result)
    first = found["findings"][0]
    line = script.read_text().splitlines()[first["site"]["line"] - 1]
    assert (found["verdict"], first["step"], first["cause"]) == ("different", 2, "unseeded-torch")
    assert "torch.seed()" in line or "torch.randn" in line
    assert (first["difference"]["elements"], first["difference"]["total"]) == (24, 24)
    assert first["difference"]["max_abs"] > 0


def test_records_of_a_difference_are_compared_alike(noisy):
    """`compare` on the pair with operations finds the same origin, in words."""
    folder, script, result = noisy
    records = [folder / ".samebits" / "noisy-verify-1" / f"op-1{x}.sbr" for x in "ab"]

    text = samebits("compare", *records, cwd=folder)

    verbose = samebits("compare", "--verbose", *records, cwd=folder)

    site = judged(result)["findings"][0]["site"]
    assert text.returncode == 1
    assert f"noisy.py:{site['line']}" in text.stdout
    evidence = " " * 16 + "- "
    assert evidence not in text.stdout
    assert evidence in verbose.stdout
    assert "status 0" not in verbose.stdout  # how long a run took is not in its record
    assert "    > " + script.read_text().splitlines()[site["line"] - 1].strip() in text.stdout


def test_stress_and_three_runs_of_a_module(tmp_path):
    """`-m`, `--runs`, `--stress` and `--steps` together; the perturbations are listed."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    write(package, "train.py", SEEDED, STEPS=50)

    words = ("verify", "--no-interventions", "--runs", "3", "--stress", "--steps", "2", "-m", "pkg.train")
    result = samebits(*words, cwd=tmp_path, timeout=300)

    assert result.returncode == 0, result.stdout + result.stderr
    assert "identical: 3 runs, 2 steps" in result.stdout
    assert "run 3: PYTHONHASHSEED=3" in result.stdout
    assert "loss" not in result.stdout


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("raise KeyError('x')", 1),
        ("print('ok')", 0),
    ],
)
def test_run_passes_the_status_through(tmp_path, source, status):
    """As bare Python, apart from one line that names the record."""
    (tmp_path / "script.py").write_text(source)

    result = samebits("run", "script.py", cwd=tmp_path)

    assert result.returncode == status
    assert len(complaints(result.stderr)) == 1
    assert ".samebits/script-1.sbr" in complaints(result.stderr)[0]


def test_run_numbers_its_records(tmp_path):
    """The next free number; --force replaces."""
    (tmp_path / "script.py").write_text("print('ok')")
    for _ in range(2):
        samebits("run", "script.py", cwd=tmp_path)
    forced = samebits("run", "--force", "--record", ".samebits/script-1.sbr", "script.py", cwd=tmp_path)

    assert forced.returncode == 0
    assert sorted(p.name for p in (tmp_path / ".samebits").glob("*.sbr")) == ["script-1.sbr", "script-2.sbr"]


def test_run_show_and_verify_count_the_same_steps(tmp_path):
    """Reads before the first optimizer are no steps in a script that has one."""
    write(
        tmp_path,
        "train.py",
        "import torch\nprint(torch.zeros(1).item())\nassert torch.ones(1)\n" + dedent(SEEDED),
        STEPS=3,
    )
    ran = samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path)
    shown = samebits("show", "a.sbr", cwd=tmp_path)
    as_json = json.loads(samebits("show", "--json", "a.sbr", cwd=tmp_path).stdout)
    verdict = judged(samebits("compare", "--json", "a.sbr", "a.sbr", cwd=tmp_path))

    assert "samebits: 3 steps recorded in a.sbr" in ran.stderr
    assert "\nsteps       3, " in shown.stdout
    assert as_json["steps"] == verdict["steps"] == 3


def test_reads_are_steps_of_a_script_that_does_nothing_else(tmp_path):
    """Without an optimizer and a backward pass there is nothing else to count."""
    write(tmp_path, "infer.py", "import torch\nprint(torch.zeros(1).item())\nassert torch.ones(1)\n")
    ran = samebits("run", "--record", "a.sbr", "infer.py", cwd=tmp_path)

    assert "samebits: 2 steps recorded in a.sbr" in ran.stderr


def test_the_script_gets_its_own_arguments(tmp_path):
    """Untouched, `--` and options of our names included."""
    (tmp_path / "script.py").write_text("import sys; print(sys.argv)")

    result = samebits("run", "script.py", "--steps", "--", "-m", "--json", cwd=tmp_path)

    assert result.stdout == "['script.py', '--steps', '--', '-m', '--json']\n"


def test_compared_from_python(seeded):
    """`samebits.compare` prints what the command prints, in a notebook too, and has its verdict as a bool."""
    folder, _ = seeded
    code = """
        import json
        import samebits
        result = samebits.compare("kept/run-1.sbr", "kept/run-2.sbr")
        print(result.identical, repr(result).partition(":")[0])
        print(result._repr_html_().partition("</b>")[0])
        print(json.dumps(result.to_dict()))
        print(result)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(code)], cwd=folder, capture_output=True, text=True, check=True
    )
    shown = samebits("compare", "kept/run-1.sbr", "kept/run-2.sbr", cwd=folder)

    as_json = samebits("compare", "--json", "kept/run-1.sbr", "kept/run-2.sbr", cwd=folder)
    first, html, fields, *rest = done.stdout.splitlines()
    assert first == "True <ComparedRecords"
    assert html.endswith(">identical")
    assert json.loads(fields) == json.loads(as_json.stdout)
    assert rest == shown.stdout.splitlines()


@pytest.mark.parametrize(
    ("step", "found"),
    [("99", "no event of step 99; it has steps 0 to"), ("-1", "whole number of at least 0")],
)
def test_a_step_that_is_not_there(seeded, step, found):
    """Showing nothing would look like a record without events."""
    folder, _ = seeded

    result = samebits("show", "--step", step, "kept/run-1.sbr", cwd=folder)

    assert result.returncode == 2
    assert found in result.stderr
    assert result.stdout == ""
