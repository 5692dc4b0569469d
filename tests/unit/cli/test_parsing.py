"""What belongs to samebits and what to the script."""

from __future__ import annotations

import re

import pytest

from samebits.cli.main import main
from samebits.cli.options import control_of
from samebits.cli.run import RunCommand
from samebits.cli.verify import VerifyCommand
from samebits.errors import SamebitsError


@pytest.mark.parametrize(
    ("words", "script", "module", "arguments"),
    [
        (["train.py"], "train.py", None, ()),
        (["train.py", "--runs", "9", "--", "-m", "x"], "train.py", None, ("--runs", "9", "--", "-m", "x")),
        (["--runs", "3", "train.py", "--json"], "train.py", None, ("--json",)),
        (["--runs=3", "--json", "train.py"], "train.py", None, ()),
        (["-m", "pkg.train", "-m", "--help"], None, "pkg.train", ("-m", "--help")),
        (["-mpkg", "a"], None, "pkg", ("a",)),
        (["--replay", "train.py", "5"], "train.py", None, ("5",)),
        (["--replay", "5", "train.py"], "train.py", None, ()),
        (["--replay=5", "-m", "pkg"], None, "pkg", ()),
        (["--replay", "--", "5"], "5", None, ()),
        (["--stress", "--", "-odd.py", "--", "b"], "-odd.py", None, ("--", "b")),
        (["--keep", "-m", "train.py"], "train.py", None, ()),
    ],
)
def test_everything_after_the_script_is_its_own(words, script, module, arguments):
    """Untouched, `--` and options of the same names included."""
    if "--keep" in words:
        words = ["--keep=-m", *words[2:]]

    target = VerifyCommand().parse(words).target

    assert (target.script, target.module, target.arguments) == (script, module, arguments)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a script or -m MODULE"),
        (["--json"], "expected a script or -m MODULE"),
        (["-m"], "expected the name of a module after -m"),
        (["--"], "expected a script"),
        ([""], "expected a script or -m MODULE"),
        (["-m", ""], "expected the name of a module after -m"),
        (["--runs", "1", "a.py"], "at least 2, found '1'"),
        (["--runs", "x", "a.py"], "found 'x'"),
        (["--steps", "0", "a.py"], "at least 1, found '0'"),
        (["--replay", "0", "a.py"], "at least 1, found '0'"),
        (["--level", "layer", "a.py"], "invalid choice: 'layer'"),
        (["--rnus", "3", "a.py"], "--rnus"),
        (["--run", "3", "a.py"], "--run"),
    ],
)
def test_wrong_command_lines(words, message):
    """One clear line, never an abbreviation that is guessed."""
    with pytest.raises(SamebitsError) as caught:
        VerifyCommand().parse(words)

    assert caught.value.slug == "usage"
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("words", "times"), [([], 0), (["--replay"], 1), (["--replay", "5"], 5), (["--replay=2"], 2)]
)
def test_replay_may_have_a_number(words, times):
    """One repetition by default, none without the option."""
    assert VerifyCommand().parse([*words, "train.py"]).replay == times


def test_run_options():
    """Defaults and values."""
    options = RunCommand().parse(["--level", "op", "--steps", "3", "--record", "a.sbr", "--force", "x.py"])

    assert (options.level, options.steps, options.record, options.force) == ("op", 3, "a.sbr", True)
    assert RunCommand().parse(["x.py"]).level == "step"


def test_unknown_command(capsys):
    """Names the commands; a script where a command belongs is understood."""
    assert main(["train.py"]) == 2

    error = capsys.readouterr().err
    assert error.startswith(
        "samebits: no command named 'train.py' (did you mean `samebits verify train.py`?); expected one"
    )
    assert "see docs/reference/messages.md#usage" in error


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("verfiy", "verify"), ("Run", "run"), ("portable_ops", "portable-ops"), ("shwo", "show")],
)
def test_a_command_that_is_misspelt(typed, meant, capsys):
    """The one that is near is named; one that is near to nothing is not guessed."""
    assert main([typed]) == 2
    assert f"(did you mean {meant}?)" in capsys.readouterr().err
    assert main(["zzz"]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["--reseed"], "--reseed needs a seed; give --seed N too"),
        (["--keyed-samples", "--reseed"], "--reseed and --keyed-samples need a seed; give --seed N too"),
        (["--keyed-samples", "--leave", "tf32"], "--keyed-samples needs a seed; give --seed N too"),
        (["--deterministic", "--per-rank-seeds"], "--per-rank-seeds needs a seed; give --seed N too"),
        (
            ["--on-drift", "warn"],
            "--on-drift does nothing without control; give --seed N or --deterministic too",
        ),
        (["--leave", "a", "--set", "a=1"], "--set and --leave do nothing without control"),
    ],
)
def test_advice_on_options_of_control_leads_to_no_second_error(words, advice):
    """What is said to be missing is all that is missing."""
    parse = RunCommand().parse
    with pytest.raises(SamebitsError, match=re.escape(advice)):
        control_of(parse([*words, "x.py"]))

    if "--set" not in words:  # two values for one switch are an error of their own
        assert control_of(parse(["--seed", "3", *words, "x.py"])).seed == 3


def test_every_message_can_be_explained(capsys):
    """By its name, or by the link that an error ends with; the list has them all."""
    assert main(["explain"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:1].strip()]
    assert {"usage", "record-version", "explain-missing"} <= set(names)
    for name in names:
        assert main(["explain", name]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{name}\n\n")
        assert "](" not in shown
        assert max(map(len, shown.splitlines())) <= 100
    assert main(["explain", "docs/reference/messages.md#usage"]) == 0
    assert main(["explain", "record-verison"]) == 2
    assert "did you mean record-version?" in capsys.readouterr().err


def test_a_notebook_is_refused_by_name(tmp_path, capsys):
    """Before anything is run, and with what to do."""
    notebook = tmp_path / "train.ipynb"
    notebook.write_text('{"cells": [], "nbformat": 4}')

    assert main(["verify", str(notebook)]) == 2

    error = capsys.readouterr().err
    assert "is a notebook, expected a script: `jupyter nbconvert --to script" in error
    assert "see docs/reference/messages.md#script-notebook" in error


def test_public_names_only():
    """What completion offers in an interpreter."""
    import samebits

    assert dir(samebits) == sorted(samebits.__all__)
    for package in (samebits.data, samebits.checkpoint, samebits.portable, samebits.digest):
        assert dir(package) == sorted(package.__all__)


@pytest.mark.parametrize(
    "words", [["--help"], *([name, "--help"] for name in ("run", "verify", "compare", "show"))]
)
def test_help_has_examples_and_fits(words, capsys):
    """Every command explains itself."""
    with pytest.raises(SystemExit) as caught:
        main(words)

    shown = capsys.readouterr().out
    assert caught.value.code == 0
    assert "examples:\n  samebits " in shown
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize("columns", ["1", "0", "-5", "x"])
def test_help_on_a_narrow_terminal(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--help"])
    assert ended.value.code == 0
    assert "Run a script twice" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["verify"], ["resume-check", "--resume-args", ""]])
def test_a_folder_without_a_name_is_refused_before_the_script_starts(tmp_path, capfd, words):
    script = tmp_path / "train.py"
    script.write_text("print('started')")
    assert main([*words, "--keep", "", str(script)]) == 2
    printed = capfd.readouterr()
    assert "--keep is empty; expected the path of a folder" in printed.err
    assert "started" not in printed.out


def test_a_record_without_a_name_is_refused(tmp_path, capsys):
    """An empty path would be the working folder."""
    script = tmp_path / "train.py"
    script.touch()
    assert main(["run", "--record", "", str(script)]) == 2
    assert "--record is empty; expected the path of a file" in capsys.readouterr().err


def test_version(capsys):
    """Plain."""
    import samebits

    with pytest.raises(SystemExit):
        main(["--version"])

    assert capsys.readouterr().out == f"samebits {samebits.__version__}\n"


def test_nothing_at_all_prints_help(capsys):
    """And is no success."""
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().out
