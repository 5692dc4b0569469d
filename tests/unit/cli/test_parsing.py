"""What belongs to samebits and what to the script."""

from __future__ import annotations

import pytest

from samebits.cli.main import main
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
        "samebits: no command named 'train.py'; expected one of verify, run, compare, show"
    )
    assert "`samebits verify train.py`" in error
    assert "see docs/messages.md#usage" in error


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
