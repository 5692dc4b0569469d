"""Defaults of options from the environment and from pyproject.toml, for every option of every command."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

import samebits
from samebits.cli.check import CheckCommand
from samebits.cli.compare import CompareCommand
from samebits.cli.cost import CostCommand
from samebits.cli.defaults import _is_repeated, _name_of, variables_of
from samebits.cli.doctor import DoctorCommand
from samebits.cli.main import main
from samebits.cli.option_rules import CLASHES, NEEDS, REFUSED
from samebits.cli.registry import COMMANDS, command_named
from samebits.cli.resume_check import ResumeCheckCommand
from samebits.cli.run import RunCommand
from samebits.cli.verify import VerifyCommand
from samebits.errors import SamebitsError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A function that writes `[tool.samebits]` into the folder above the working folder."""
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")

    def write(text: str) -> None:
        (tmp_path / "pyproject.toml").write_text(text)

    return write


def all_options() -> list[tuple[str, argparse.Action]]:
    """Every option of every command that can have a default."""
    found = []
    for name in COMMANDS:
        found += [(name, action) for action in command_named(name).parser().actions() if _name_of(action)]
    return found


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(project, monkeypatch):
    """And a table of the command before the common one, for variables too."""
    project("[tool.samebits]\nseed = 1\nsteps = 11\n[tool.samebits.run]\nseed = 2\n")
    assert (RunCommand().parse(["x.py"]).seed, VerifyCommand().parse(["x.py"]).seed) == (2, 1)
    monkeypatch.setenv("SAMEBITS_SEED", "3")
    assert (RunCommand().parse(["x.py"]).seed, VerifyCommand().parse(["x.py"]).seed) == (3, 3)
    monkeypatch.setenv("SAMEBITS_RUN_SEED", "4")
    assert (RunCommand().parse(["x.py"]).seed, VerifyCommand().parse(["x.py"]).seed) == (4, 3)
    options = RunCommand().parse(["--seed=5", "x.py", "--steps", "1"])
    assert (options.seed, options.steps) == (5, 11)
    (shown,) = options.defaults
    assert shown.words == "--steps 11"
    assert shown.place.startswith("tool.samebits.steps in ")


def test_an_empty_variable_takes_a_default_away(project, monkeypatch):
    """So that one run can go without it."""
    project("[tool.samebits]\nseed = 1\nportable = true\n")
    monkeypatch.setenv("SAMEBITS_SEED", "")
    monkeypatch.setenv("SAMEBITS_PORTABLE", "0")
    options = RunCommand().parse(["x.py"])
    assert (options.seed, options.portable, options.defaults) == (None, False, ())


def test_the_variable_that_switches_defaults_off(project, monkeypatch):
    """A file that is not TOML does not matter then."""
    project("[tool.samebits\n")
    monkeypatch.setenv("SAMEBITS_NO_DEFAULTS", "1")
    monkeypatch.setenv("SAMEBITS_SEED", "x")
    assert RunCommand().parse(["x.py"]).defaults == ()


def test_kinds_of_values(project, monkeypatch):
    """Flags, numbers, choices, lists, options with an optional value, and required ones."""
    project(
        '[tool.samebits.run]\nlevel = "op"\nno-data = true\nno-changes = false\npin = ["clock", "aslr"]\n'
        'tap-modules = "a.*"\ndeterministic = true\nset = ["tf32=1"]\n'
        "[tool.samebits.verify]\nreplay = true\nbudget = 2.5\n"
        '[tool.samebits.resume-check]\nresume-args = ""\n[tool.samebits.doctor]\npromise = "proven"\n'
    )
    options = RunCommand().parse(["x.py"])
    assert (options.level, options.no_data, options.no_changes) == ("op", True, False)
    assert (options.pin, options.tap_modules, options.set) == (["clock", "aslr"], ["a.*"], [("tf32", "1")])
    assert RunCommand().parse(["--pin", "memory", "x.py"]).pin == ["memory"]
    options = VerifyCommand().parse(["x.py"])
    assert (options.replay, options.budget) == (1, 2.5)
    assert ResumeCheckCommand().parse(["x.py"]).resume_args == ""
    assert DoctorCommand().parse([]).promise == ["proven"]
    monkeypatch.setenv("SAMEBITS_PIN", "'memory' clock")
    monkeypatch.setenv("SAMEBITS_REPLAY", "3")
    monkeypatch.setenv("SAMEBITS_NO_DATA", "off")
    assert RunCommand().parse(["x.py"]).pin == ["memory", "clock"]
    assert not RunCommand().parse(["x.py"]).no_data
    assert VerifyCommand().parse(["x.py"]).replay == 3
    monkeypatch.setenv("SAMEBITS_REPLAY", "yes")
    assert VerifyCommand().parse(["x.py"]).replay == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "[tool.samebits]\nsead = 1",
            r"tool\.samebits\.sead in \S+ is not an option of samebits \(did you mean seed",
        ),
        ("[tool.samebits.run]\nruns = 3", r"samebits\.run\.runs in \S+ is not an option of samebits run"),
        ("[tool.samebits.rum]\nseed = 3", r"tool\.samebits\.rum in \S+ is no command \(did you mean run\?\)"),
        ("[tool.samebits]\nrun = 3", r"tool\.samebits\.run in \S+ is not a table"),
        ("[tool]\nsamebits = 3", r"tool\.samebits in \S+ is not a table"),
        ('[tool.samebits]\nseed = "x"', r"seed in \S+ is 'x'; expected a whole number"),
        ("[tool.samebits]\nseed = 1.5", r"seed in \S+ is 1\.5; expected"),
        ("[tool.samebits]\nseed = true", r"seed in \S+ is true; expected a text or a number"),
        ("[tool.samebits]\nseed = [1]", r"seed in \S+ is \[1\]; expected a text or a number"),
        ("[tool.samebits]\nportable = 1", r"portable in \S+ is 1; expected true or false"),
        ('[tool.samebits]\nportable = "yes"', r"portable in \S+ is 'yes'; expected true or false"),
        ("[tool.samebits]\nrecord = 3", r"record in \S+ is 3; expected a text"),
        ('[tool.samebits]\nlevel = "layer"', r"level in \S+ is 'layer'; expected one of step, op"),
        ("[tool.samebits]\nset = [1]", r"set in \S+ is 1; expected SWITCH=VALUE$"),
        ("[tool.samebits]\nhelp = true", r"help in \S+ is not an option of samebits"),
        ("[tool.samebits\n", r"pyproject\.toml is not TOML: "),
    ],
)
def test_what_cannot_be_used_is_refused(text, found, project, capsys):
    """In one line, with status 2, by the command that would use it."""
    project(text + "\n")
    assert main(["run", "x.py"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert re.match(f"samebits: .*{found}", first), first
    assert "messages.md#defaults" in second


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("SAMEBITS_SEED", "x", "SAMEBITS_SEED is 'x'; expected a whole number"),
        ("SAMEBITS_PORTABLE", "maybe", "SAMEBITS_PORTABLE is 'maybe'; expected 1 or 0"),
        ("SAMEBITS_PIN", "'", 'SAMEBITS_PIN is "\'"; expected words as in a shell'),
    ],
)
def test_variables_that_cannot_be_used_are_refused(name, value, found, monkeypatch):
    """As a wrong option is."""
    monkeypatch.setenv(name, value)
    with pytest.raises(SamebitsError, match=re.escape(found)) as caught:
        RunCommand().parse(["x.py"])
    assert caught.value.slug == "defaults"


def test_a_key_of_another_command_is_no_mistake(project):
    """And an option that means something else in two commands can be set for one."""
    project("[tool.samebits]\nruns = 3\n[tool.samebits.cost]\nsteps = 5\n[tool.samebits.show]\nnothing = 1\n")
    assert RunCommand().parse(["x.py"]).defaults == ()
    assert VerifyCommand().parse(["x.py"]).runs == 3
    assert CostCommand().parse(["x.py"]).steps == 5


def test_the_nearest_table_counts_and_other_files_are_passed_over(project, tmp_path, monkeypatch):
    """A project file without the table, or one of no concern that is not TOML, is not the nearest."""
    project("[tool.samebits]\nseed = 1\n")
    near = tmp_path / "below/pyproject.toml"
    near.write_text('[project]\ndependencies = ["samebits"]\n')
    assert RunCommand().parse(["x.py"]).seed == 1
    near.write_text("[project\n")
    assert RunCommand().parse(["x.py"]).seed == 1
    near.write_text("[tool.samebits]\n")
    assert RunCommand().parse(["x.py"]).seed is None


ALONE = """
[tool.samebits]
reseed = true
on-drift = "restore"
portable = true
state-only = true
verbose = true
quick = true
apply = true
share = ["data"]
tolerance = 4
versus = "--lr 1"
executor-option = ["a=b"]
"""


@pytest.mark.parametrize(
    ("command", "words", "kept"),
    [
        ("compare", "a b", "state-only verbose"),
        ("compare", "--align names a b", "verbose tolerance"),
        ("run", "x.py", "portable"),
        ("run", "--deterministic x.py", "on-drift portable"),
        ("run", "--seed 1 x.py", "reseed on-drift portable"),
        ("verify", "x.py", "portable state-only verbose quick"),
        ("verify", "--fix x.py", "portable state-only verbose apply"),
        ("verify", "--fresh x.py", "portable state-only verbose quick share"),
        ("verify", "--nproc-per-node 2 x.py", "portable state-only"),
        ("verify", "--executor slurm x.py", "portable state-only verbose quick executor-option"),
        ("resume-check", "--resume-args= x.py", "portable verbose share"),
        ("spread", "x.py", "reseed versus"),
        ("spread", "--against a x.py", "reseed"),
        ("cost", "x.py", "on-drift"),
        ("check", "train", "state-only quick"),
        ("check", "a.sbr", "state-only verbose"),
    ],
)
def test_a_default_that_does_not_go_alone_is_passed_over(command, words, kept, project):
    """The user did not type it, so it is no mistake of theirs."""
    project(ALONE)
    options = command_named(command).parse(words.split())
    assert sorted(each.option[2:] for each in options.defaults) == sorted(kept.split())
    for name in {"tolerance", "apply", "share", "reseed", "quick", "verbose"} - set(kept.split()):
        assert not getattr(options, name, None)


def test_names_in_the_rules_are_options():
    """A name that is misspelt would be a rule of nothing."""
    of = {name: {_name_of(action) for each, action in all_options() if each == name} for name in COMMANDS}
    every = set().union(*of.values())
    assert {*NEEDS, *(name for names in NEEDS.values() for name in names)} <= every
    for command, clashes in CLASHES.items():
        assert {*clashes, *(name for names in clashes.values() for name in names)} <= of[command]
    for command, names in REFUSED.items():
        assert set(names) <= of[command]


def test_a_default_that_is_refused_names_where_it_came_from(project, monkeypatch):
    """Before the line with all defaults, too."""
    project('[tool.samebits.compare]\nalign = "names"\n')
    monkeypatch.setenv("SAMEBITS_STATE_ONLY", "1")
    with pytest.raises(SamebitsError) as caught:
        CompareCommand().parse(["a", "b"])
    said = str(caught.value)
    assert "--align names (tool.samebits.compare.align in " in said
    assert "--state-only (SAMEBITS_STATE_ONLY)" in said
    project("[tool.samebits]\nquick = true\n")
    with pytest.raises(SamebitsError, match="--quick does not go with a record"):
        CheckCommand().run(CheckCommand().parse(["--quick", "a.sbr"]))


def test_the_help_and_the_run_say_what_was_taken_from_where(project, capsys):
    """On stderr, since stdout may be JSON."""
    project("[tool.samebits]\nolder-than = 9999\n")
    with pytest.raises(SystemExit):
        main(["clean", "--help"])
    assert re.search(r"defaults here:\n  --older-than 9999  \(tool\.samebits", capsys.readouterr().out)
    assert main(["clean"]) == 0
    assert re.match(r"samebits: defaults: --older-than 9999 \(tool\.samebits\S+ in ", capsys.readouterr().err)


def test_each_option_has_variables_of_its_own():
    """No two options of a command share one, and none is a variable that samebits has for something else."""
    options = all_options()
    assert len(options) > 100
    source = "\n".join(path.read_text() for path in Path(samebits.__file__).parent.rglob("*.py"))
    taken = set(re.findall(r'"(SAMEBITS_[A-Z_]+)"', source)) | {"SAMEBITS_NO_DEFAULTS"}
    assert len(taken) > 5
    for command in COMMANDS:
        names = [_name_of(action) for name, action in options if name == command]
        assert len(names) == len(set(names))
        for name in names:
            assert not taken & set(variables_of(name, command)), name
    commands = {variables_of(_name_of(action), command)[0] for command, action in options}
    shared = {variables_of(_name_of(action), command)[1] for command, action in options}
    assert not commands & shared


def test_the_kind_of_each_option_is_known():
    """What an option that can be repeated looks like is a convention, which this test keeps."""
    for command, action in all_options():
        is_append = isinstance(action, argparse._AppendAction)
        assert _is_repeated(action) == is_append, (command, action.option_strings)
        assert action.nargs in (None, 0, "?"), (command, action.option_strings)
