"""What each run is told, and where it is kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from spread_builders import make_run, make_seeding, make_series

from samebits.commands.spread import request as request_module
from samebits.commands.spread.request import (
    SpreadRequest,
    environment_for,
    merged_arguments,
    settings_for,
    share_cores,
    target_for,
)
from samebits.commands.spread.seed_runs import (
    changed_files,
    file_digest,
    folder_of,
    load_configuration,
    load_run,
    save_run,
    write_index,
)
from samebits.errors import SamebitsError
from samebits.recording.runner import Target
from samebits.recording.settings import RecordingSettings
from samebits.switches.switch import Control


def make_request(*arguments: str, **fields: object) -> SpreadRequest:
    """A request for two seeds of train.py."""
    given = {"seeds": (0, 1), "jobs": 2, "threads": 1, **fields}
    return SpreadRequest(Target("train.py", None, arguments), **given)


def test_settings_carry_the_seed():
    """Also through the environment of the child."""
    settings = settings_for(7, make_request(max_steps=3), Path("a/seed-7"))

    read = RecordingSettings.from_json(settings.to_json())

    assert read == settings
    assert (read.control, read.max_steps) == (Control(seed=7), 3)
    assert (read.record, read.values) == ("a/seed-7.sbr", "a/seed-7.values.jsonl")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("", ("--out", "m-3.pt")),
        ("--seed", ("--out", "m-3.pt", "--seed", "3")),
        ("seed=", ("--out", "m-3.pt", "seed=3")),
    ],
)
def test_arguments_of_one_seed(name, arguments):
    """A place for the seed in them, and an argument for it."""
    assert target_for(3, make_request("--out", "m-{seed}.pt", seed_argument=name)).arguments == arguments


@pytest.mark.parametrize(
    ("jobs", "threads", "variable", "expected"),
    [
        (None, None, "", (8, 1)),
        (2, None, "", (2, 4)),
        (3, None, "", (3, 2)),
        (20, None, "", (20, 1)),
        (None, 4, "", (2, 4)),
        (None, 16, "", (1, 16)),
        (2, 3, "", (2, 3)),
        (None, None, "2", (4, 2)),
        (1, None, "2", (1, 2)),
        (None, None, "many", (8, 1)),
    ],
)
def test_runs_do_not_fight_for_cores(monkeypatch, jobs, threads, variable, expected):
    """Runs at a time, threads of each, on eight cores."""
    monkeypatch.setattr(request_module, "available_cores", lambda: 8)

    assert share_cores(jobs, threads, {"OMP_NUM_THREADS": variable}) == expected
    variables = environment_for(make_request(threads=3))
    assert (variables["OMP_NUM_THREADS"], "PYTHONHASHSEED" in variables) == ("3", True)


@pytest.mark.parametrize(
    ("base", "other", "expected"),
    [
        ("--lr 0.1", "--lr 0.01", "--lr 0.01"),
        ("--data x --lr 0.1 --big", "--lr 0.01", "--data x --lr 0.01 --big"),
        ("--lr=0.1", "--lr 0.01", "--lr 0.01"),
        ("--lr 0.1", "--wd 1e-2", "--lr 0.1 --wd 1e-2"),
        ("--betas 0.9 0.99 --lr 1", "--betas 0.8 0.9", "--betas 0.8 0.9 --lr 1"),
        ("--shift -1", "--shift -2", "--shift -2"),
        ("lr=0.1 model.dim=3", "lr=0.2", "lr=0.2 model.dim=3"),
        ("", "--amp", "--amp"),
        ("--amp", "--amp", "--amp"),
        ("-l 3", "-l 4", "-l 4"),
    ],
)
def test_a_second_configuration(base, other, expected):
    """Takes the first's arguments, some of them replaced."""
    assert merged_arguments(tuple(base.split()), tuple(other.split())) == tuple(expected.split())


def test_a_folder_for_each_command(monkeypatch, tmp_path):
    """Whatever can change the result and is known before the run."""
    monkeypatch.chdir(tmp_path)
    plain = folder_of(make_request("--lr", "1"))
    others = [make_request("--lr", "2"), make_request("--lr", "1", threads=2)]
    others += [make_request("--lr", "1", max_steps=5), make_request("--lr", "1", seed_argument="--seed")]
    folders = {folder_of(other) for other in others} | {plain}

    assert len(folders) == 5
    assert folder_of(make_request("--lr", "1", seeds=(5,), jobs=1, fresh=True)) == plain
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    assert folder_of(make_request("--lr", "1")) != plain


def test_a_run_reads_back(tmp_path):
    """NaN included."""
    run = make_run(
        3,
        make_series(1.0, float("inf")),
        seedings=(make_seeding(),),
        saved=("m.pt",),
        files=(("a.py", "f0"),),
    )

    save_run(tmp_path, run)

    assert load_run(tmp_path, 3) == run
    assert load_run(tmp_path, 4) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2}', "3"])
def test_a_damaged_run_is_none(tmp_path, text):
    """It is run again."""
    (tmp_path / "seed-3.json").write_text(text)

    assert load_run(tmp_path, 3) is None


def test_a_run_counts_while_its_sources_stay(tmp_path):
    """Each of them by its contents; one that was changed while it ran never counts."""
    source = tmp_path / "model.py"
    source.write_text("a = 1\n")
    run = make_run(0, files=((str(source), file_digest(str(source))),))
    assert changed_files(run) == ()

    source.write_text("a = 2\n")

    assert changed_files(run) == (str(source),)
    assert changed_files(dataclasses.replace(run, files=((str(source), ""),))) == (str(source),)
    source.unlink()
    assert changed_files(run) == (str(source),)


def test_a_finished_spread_is_loaded(tmp_path):
    """All seeds in it, in order."""
    write_index(tmp_path, make_request("--lr", "1"))
    for seed in (10, 2):
        save_run(tmp_path, make_run(seed, make_series(seed)))

    found = load_configuration(tmp_path)

    assert [run.seed for run in found.runs] == [2, 10]
    assert found.command == ("train.py", "--lr", "1")


def test_no_spread_there(tmp_path):
    """Refused by name."""
    with pytest.raises(SamebitsError, match="no finished spread"):
        load_configuration(tmp_path / "nothing")
