"""`samebits spread` on real scripts."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import complaints, judged, samebits, start, write

pytest.importorskip("scipy")

TRAIN = """
    import sys
    import torch
    import helper
    weight = torch.randn(3, requires_grad=True)
    start = weight.detach().clone()
    for step in range(4):
        loss = (weight * helper.SCALE).square().sum()
        loss.backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
        print(f"step {step} loss {loss.item():.6f} first {start[0].item():.9f}")
"""
PLAIN = """
    import random
    import sys
    draw = random.random()
    for step in range(4):
        print(f"step {step} loss {draw / (step + 1):.6f}")
    if "--fail" in sys.argv and draw > 0.5:
        raise ValueError("bad luck")
"""
SILENT = """
    import torch
    FIRST
    weight = torch.randn(3, requires_grad=True)
    for step in range(3):
        weight.square().sum().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
"""


@pytest.fixture
def folder(tmp_path):
    """A script and a module that it imports."""
    write(tmp_path, "train.py", TRAIN)
    write(tmp_path, "plain.py", PLAIN)
    (tmp_path / "helper.py").write_text("SCALE = 1.0\n")
    return tmp_path


def found(folder, *words: object, **extra: str):
    """The one configuration that `spread --json` prints."""
    result = samebits("spread", "--json", *words, cwd=folder, **extra)
    assert result.returncode == 0, result.stderr
    return judged(result)


def reused(decoded, number: int = 0) -> list[int]:
    """Seeds that were not run."""
    return [run["seed"] for run in decoded["configurations"][number]["runs"] if run["reused"]]


def test_a_seed_gives_what_torch_gives_and_is_run_once(folder):
    """Curves as printed; finished seeds are taken from the folder until a source file changes."""
    first = found(folder, "--no-plot", "--seeds", "0..2", "train.py")

    runs = first["configurations"][0]["runs"]
    code = "import torch\nfor s in range(3): torch.manual_seed(s); print(f'{torch.randn(3)[0].item():.9f}')"
    expected = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    outputs = [
        Path(folder, first["configurations"][0]["folder"], f"seed-{s}.out").read_text() for s in range(3)
    ]
    assert [text.split()[-1] for text in outputs] == expected
    assert (first["metric"]["name"], runs[0]["x"]) == ("loss", [0, 1, 2, 3])
    assert reused(first) == []

    more = found(folder, "--no-plot", "--seeds", "1..3", "train.py")
    assert reused(more) == [1, 2]
    assert more["configurations"][0]["runs"][0]["values"] == runs[1]["values"]

    (folder / "helper.py").write_text("SCALE = 2.0\n")
    time.sleep(1.1)  # a file as young as its run does not count as known
    changed = found(folder, "--no-plot", "--seeds", "1,2", "train.py")
    assert reused(changed) == []
    assert any("helper.py changed" in note for note in changed["notes"])
    assert reused(found(folder, "--no-plot", "--seeds", "1,2", "train.py")) == [1, 2]
    assert reused(found(folder, "--no-plot", "--fresh", "--seeds", "1,2", "train.py")) == []


def test_report_and_plot(folder):
    """The table on stdout, nothing of the scripts' output; the plot beside the runs."""
    pytest.importorskip("matplotlib")

    result = samebits("spread", "--seeds", "0..2", "train.py", cwd=folder, COLUMNS="80")

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("loss of train.py\n")
    assert max(map(len, result.stdout.splitlines())) <= 80
    (image,) = folder.glob(".samebits/spread/*/loss.png")
    assert image.with_suffix(".svg").exists()
    assert (folder / ".samebits" / ".gitignore").read_text() == "*\n"
    assert not list(folder.glob(".samebits/spread/*/running-*"))
    assert not list(folder.glob(".samebits/spread/*/*.sbr"))


def test_failed_seeds_do_not_spoil_the_rest(folder):
    """They are named with the last line of their error, and run again the next time."""
    decoded = found(folder, "--no-plot", "--seeds", "0..3", "plain.py", "--fail")

    (configuration,) = decoded["configurations"]
    assert [failure["seed"] for failure in configuration["failures"]] == [0, 2]
    assert [run["seed"] for run in configuration["runs"]] == [1, 3]
    assert configuration["failures"][0]["reason"] == "ValueError: bad luck"
    assert "Traceback" in Path(folder, configuration["failures"][0]["log"]).read_text()


def test_all_seeds_fail(tmp_path):
    """Status 2, one line, and the rest is not started for nothing."""
    (tmp_path / "bad.py").write_text("import sys\nsys.exit('no data here')\n")

    result = samebits("spread", "--jobs", "1", "--seeds", "0..9", "bad.py", cwd=tmp_path)

    assert result.returncode == 2
    assert len(complaints(result.stderr)) == 1
    assert "0 of 10 seeds of bad.py finished" in result.stderr
    assert "no data here" in result.stderr
    assert "8 more were not started" in result.stderr
    assert "see docs/reference/messages.md#spread-failed" in result.stderr


def test_an_option_in_the_wrong_place(tmp_path):
    """The script does not know it; we do."""
    (tmp_path / "a.py").write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")

    result = samebits("spread", "--seeds", "0,1", "a.py", "--list-metrics", cwd=tmp_path)

    assert result.returncode == 2
    assert "put it before the script" in result.stderr


def test_a_script_that_seeds_itself(tmp_path):
    """Nothing printed: the loss at backward is taken; the line that makes all seeds equal is named."""
    write(tmp_path, "train.py", SILENT, FIRST="torch.manual_seed(7)")

    result = samebits("spread", "--no-plot", "--seeds", "0..1", "train.py", cwd=tmp_path)

    text = " ".join(result.stdout.split())
    assert result.returncode == 0, result.stderr
    assert "backward@train.py:5 of train.py" in text
    assert "every seed gave the same bits" in text
    assert "torch.manual_seed(7) at train.py:2" in text


def test_the_seed_as_an_argument(tmp_path):
    """For a script that seeds itself from its arguments."""
    write(tmp_path, "train.py", SILENT, FIRST="import sys; torch.manual_seed(int(sys.argv[2]))")

    decoded = found(tmp_path, "--no-plot", "--seeds", "3,4", "--seed-argument", "--seed", "train.py")

    states = {run["state"] for run in decoded["configurations"][0]["runs"]}
    assert len(states) == 2
    assert decoded["notes"] == []


def test_two_configurations(folder):
    """Run side by side, and compared again later from their folders."""
    decoded = found(folder, "--no-plot", "--seeds", "0..5", "--versus", "--a 2 --b", "plain.py", "--a", "1")

    commands = [one["command"] for one in decoded["configurations"]]
    assert commands == [["plain.py", "--a", "1"], ["plain.py", "--a", "2", "--b"]]
    assert decoded["contrast"]["verdict"] == "no"
    assert "same value" in decoded["contrast"]["reason"]

    first, second = (one["folder"] for one in decoded["configurations"])
    again = found(folder, "--no-plot", first, "--against", second)
    assert again["contrast"] == decoded["contrast"]


def test_threads_are_the_same_for_all(folder):
    """And do not depend on the number of seeds."""
    decoded = found(folder, "--no-plot", "--threads", "2", "--jobs", "1", "--seeds", "0,1", "train.py")

    assert decoded["configurations"][0]["threads"] == 2
    (saved,) = folder.glob(".samebits/spread/*/seed-0.json")
    assert json.loads(saved.read_text())["threads"] == 2


@pytest.mark.parametrize(
    ("words", "message", "slug"),
    [
        (("--seeds", "9..0", "train.py"), "runs backwards", "seeds"),
        (("--seeds", "0", "plain.py"), "at least two", "spread-failed"),
        (("--seeds", "0..1", "nothing.py"), "nothing.py", "script-missing"),
        (("--jobs", "0", "train.py"), "found '0'", "usage"),
        (("--seeds", "0,1"), "expected a script", "usage"),
        (("--versus", "'", "train.py"), "No closing quotation", "usage"),
        (("--versus", "--a 1", "train.py", "--a", "1"), "changes nothing", "usage"),
        (("--against", "nothing", "train.py"), "no finished spread", "spread-missing"),
        (("--against", "x", "--versus", "--a", "train.py"), "expected one of them", "usage"),
        ((), "expected a script", "usage"),
    ],
)
def test_bad_input(folder, words, message, slug):
    """One line and status 2."""
    result = samebits("spread", *words, cwd=folder)

    assert result.returncode == 2, result.stdout
    assert len(complaints(result.stderr)) == 1
    assert message in result.stderr
    assert f"see docs/reference/messages.md#{slug}" in result.stderr
    assert "Traceback" not in result.stderr


def test_unknown_metric(folder):
    """The names that there are; as JSON too."""
    result = samebits("spread", "--json", "--metric", "los", "--seeds", "0,1", "plain.py", cwd=folder)

    assert result.returncode == 2
    assert "no metric named 'los'" in judged(result)["reason"]
    assert "expected one of loss" in result.stderr


def test_words_after_the_script_are_its_own(tmp_path):
    """A script may have an option of the same name; one line says who gets it."""
    (tmp_path / "a.py").write_text("import sys\nprint('loss', len(sys.argv))\n")

    result = samebits(
        "spread", "--json", "--no-plot", "--seeds", "0,1", "a.py", "--seeds", "7", "--json", cwd=tmp_path
    )

    (configuration,) = judged(result)["configurations"]
    assert configuration["command"] == ["a.py", "--seeds", "7", "--json"]
    assert [run["final"] for run in configuration["runs"]] == [4.0, 4.0]
    assert result.stderr.count("--seeds follows the script, so the script gets it") == 1


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
@pytest.mark.parametrize(
    ("number", "finished"), [(signal.SIGINT, 0), (signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 2)]
)
def test_interrupted(tmp_path, number, finished):
    """Finished seeds are kept, and no run goes on; two are enough for the report."""
    source = """
        import os, pathlib, time
        here = pathlib.Path("ran")
        print("loss 1")
        if (here.stat().st_size if here.exists() else 0) == FINISHED:
            pathlib.Path("waits").write_text(str(os.getpid()))
            time.sleep(600)
        with here.open("a") as file:
            file.write("x")
    """
    write(tmp_path, "train.py", source, FINISHED=finished)
    process = start("spread", "--jobs", "1", "--seeds", "0..5", "train.py", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "waits").exists() or not (tmp_path / "waits").read_text():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)

    os.kill(process.pid, number)
    stdout, stderr = process.communicate(timeout=30)

    assert process.returncode == 128 + number, stderr
    assert len(complaints(stderr)) == 1
    assert ("so far is kept" in stderr) == (finished > 0)
    assert len(list(tmp_path.glob(".samebits/spread/*/seed-*.json"))) == finished
    assert ("2 of 6 seeds" in stdout and "not run     2, 3, 4, 5" in stdout) == (finished == 2), stdout
    child = (tmp_path / "waits").read_text()
    assert subprocess.run(["ps", "-p", child], capture_output=True, check=False).returncode != 0


def test_what_loggers_are_given(tmp_path):
    """Lightning's CSV logger, whose values are not rounded."""
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("needs lightning")
    source = """
        from lightning.pytorch.loggers import CSVLogger
        import torch
        logger = CSVLogger("logs-" + __import__("sys").argv[1])
        for step in range(3):
            logger.log_metrics({"val_acc": torch.rand(()).item(), "name": "x"}, step * 10)
    """
    write(tmp_path, "train.py", source)

    decoded = found(tmp_path, "--no-plot", "--seeds", "0,1", "train.py", "{seed}")

    assert (decoded["metric"]["name"], decoded["metric"]["source"]) == ("val_acc", "logged")
    assert decoded["configurations"][0]["runs"][0]["x"] == [0, 10, 20]


def test_line_fit_shows_why_one_run_proves_little(tmp_path):
    """The example ends anywhere within a factor of two, and more, by its seed alone."""
    script = Path(__file__).parents[2] / "examples" / "line_fit.py"

    decoded = found(tmp_path, "--no-plot", "--seeds", "0..3", script)

    (configuration,) = decoded["configurations"]
    finals = [run["final"] for run in configuration["runs"]]
    assert decoded["metric"]["name"] == "loss"
    assert configuration["runs"][0]["x"] == list(range(99, 1000, 100))
    assert max(finals) > 2 * min(finals)
    assert finals[3] == pytest.approx(0.268114, abs=1e-3)  # as docs/index.md: seed 3


def test_without_scipy_and_matplotlib(folder):
    """The table is printed; one line each says what is missing, and nothing weaker takes its place."""
    for name in ("scipy", "matplotlib"):
        package = folder / "missing" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"raise ImportError('no {name}')\n")

    result = samebits("spread", "--seeds", "0..2", "plain.py", cwd=folder, PYTHONPATH=str(folder / "missing"))

    text = " ".join(result.stdout.split())
    assert result.returncode == 0, result.stderr
    assert "sd " in text
    assert "95 %" not in text
    assert "scipy is not installed: no interval and no test" in text
    assert "matplotlib is not installed: no plot" in text
