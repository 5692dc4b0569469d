"""What a resumed run did not restore is found and named: one thing left out at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import pytest
from cli_support import write
from resume_scripts import ACCUMULATING, ADVERSARIAL, TRAINING, WORKERS

from samebits.commands.resume_check._alignment import WholeRun
from samebits.commands.resume_check._check import ResumeRequest
from samebits.commands.resume_check._judge import judge_kill, kill_run, resume_run
from samebits.commands.resume_check._state_log import read_lines
from samebits.commands.resume_check.runs import RunMaker
from samebits.commands.resume_facts import Fact, FactCode, Part
from samebits.recording.runner import Target
from samebits.report.resume_sentences import sentence

if TYPE_CHECKING:
    from pathlib import Path


class Bench:
    """One whole run and one killed run of a script, resumed as often as is wanted."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        write(folder, "train.py", source)
        request = ResumeRequest(
            Target("train.py", None, ()), ("--resume",), folder / "records", folder, output="nothing",
            environment={"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.maker = RunMaker(request, lambda _: None)
        assert self.maker.whole().status == 0
        path = self.maker.log("whole")
        self.whole = WholeRun(self.maker.record("whole"), path, read_lines(path))

    def killed(self, after: int) -> None:
        """Make the killed run, and keep what it left."""
        self.kill = kill_run(self.maker, self.whole, after)
        assert not self.kill.reason
        shutil.copytree(self.maker.folder.path, self.folder / "left")

    def resumed(self):
        """Resume from what the killed run left."""
        self.maker.folder.remove()
        shutil.copytree(self.folder / "left", self.maker.folder.path)
        return resume_run(self.maker, self.whole, self.kill)


@pytest.fixture(scope="module", autouse=True)
def names_of_temporary_files():
    """What `tempfile` makes once in a process is there before a test looks for what it leaves behind."""
    with tempfile.NamedTemporaryFile():
        pass


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The training script, killed after 9 of 12 steps; its checkpoint is from after 8."""
    folder = tmp_path_factory.mktemp("resume")
    found = Bench(folder, TRAINING)
    found.killed(9)
    return found


def named(kill):
    """The sentences on what was not restored, by kind."""
    return {omission.part: sentence(omission.fact) for omission in kill.omissions}


def test_a_script_that_restores_all_is_identical(bench):
    """No false alarm."""
    kill = bench.resumed()

    assert (kill.verdict, kill.resumed_at, kill.compared, kill.difference) == ("identical", 8, 4, None)
    assert kill.omissions == ()
    assert kill.notes == ()


PLANTED = [
    # what is left out, the step from which it differs, all kinds that are named, words of the report
    ("torch", 8, {"generator"}, "torch's CPU generator: not restored: as at the start"),
    ("numpy", 8, {"augmentation", "generator"}, "NumPy's global generator: not restored"),
    ("python", 8, {"augmentation", "generator"}, "Python's `random`: not restored"),
    ("noise", 8, {"augmentation", "variables"}, "generator `noise` has other contents"),
    ("order", 8, {"data", "variables"}, "generator `order` has other contents: it is as before step 0"),
    (
        "position",
        8,
        {"data", "variables"},
        "that of step 6 again (batch 0 of pass 1), where batch 2 of pass 1",
    ),
    ("optimizer", 8, {"optimizer", "hyperparameters"}, "the optimizer's state is not restored: it has none"),
    ("scheduler", 9, {"schedule"}, "StepLR last_epoch is 0, not 8"),
    ("buffers", 8, {"buffers"}, "2 of 3 buffers differ from those before step 8: 1.running_mean"),
    (
        "head",
        8,
        {"parameters"},
        "2 of 6 parameters differ from those before step 8: 3.weight, 3.bias (as at the start)",
    ),
    ("weights", 8, {"parameters", "buffers"}, "6 of 6 parameters differ from those before step 8"),
    ("ema", 12, {"variables"}, "tensor `ema['0.weight']` has other contents"),
    ("counter", 8, {"variables"}, "`step` is 0 as at the start, not 8"),
]


@pytest.mark.parametrize(("forgotten", "step", "kinds", "words"), PLANTED, ids=[row[0] for row in PLANTED])
def test_what_is_left_out_is_named(bench, monkeypatch, forgotten, step, kinds, words):
    """The first step that differs, and exactly what is not as it was."""
    monkeypatch.setenv("FORGET", forgotten)

    kill = bench.resumed()

    assert (kill.verdict, kill.resumed_at) == ("different", 8)
    assert kill.difference is not None
    assert kill.difference.step == step
    assert set(named(kill)) == kinds
    assert words in " ".join(named(kill).values())


def test_what_makes_no_difference_yet_is_told(bench, monkeypatch):
    """A loss scale that is a power of two changes no bits."""
    monkeypatch.setenv("FORGET", "scaler")

    kill = bench.resumed()

    assert kill.verdict == "identical"
    assert "GradScaler scale is 1024.0, not 4096.0" in named(kill)["scaler"]


@pytest.mark.parametrize(
    ("saving", "start", "words"),
    [
        ("early", 7, "that of step 8 (batch 2 of pass 1): batch 1 of pass 1 is left out"),
        ("late", 8, "that of step 7 again (batch 1 of pass 1), where batch 2 of pass 1 was due"),
    ],
)
def test_a_checkpoint_of_two_moments(tmp_path, monkeypatch, saving, start, words):
    """Saved before `Optimizer.step`, or with a position that is one batch behind."""
    monkeypatch.setenv("SAVE", saving)
    bench = Bench(tmp_path, TRAINING)

    kill = judge_kill(bench.maker, bench.whole, 9)

    assert (kill.verdict, kill.resumed_at) == ("different", start)
    data = next(omission for omission in kill.omissions if omission.part == Part.DATA)
    assert words in sentence(data.fact)
    late = saving == "early"  # the position is that after the step, the parameters are not
    code = FactCode.POSITION_SAVED_LATE if late else FactCode.POSITION_SAVED_EARLY
    assert data.evidence == (Fact.of(code),)


def test_seeds_of_workers(tmp_path):
    """A loader that skips by its sampler has workers that begin anew."""
    bench = Bench(tmp_path, WORKERS)

    kill = judge_kill(bench.maker, bench.whole, 3)

    assert (kill.verdict, kill.resumed_at) == ("different", 2)
    assert set(named(kill)) == {"augmentation"}
    assert kill.omissions[0].evidence == (Fact.of(FactCode.WORKERS_REPEAT, 1),)


def test_accumulated_gradients(tmp_path):
    """A checkpoint between two backward passes of one step."""
    bench = Bench(tmp_path, ACCUMULATING)

    kill = judge_kill(bench.maker, bench.whole, 4)

    assert (kill.verdict, kill.resumed_at) == ("different", 3)
    assert "made from 1 backward pass, where the whole run made 2" in named(kill)["gradients"]


def test_two_optimizers(tmp_path, monkeypatch):
    """Gradients that the whole run had not zeroed yet are no difference; one optimizer of two is named."""
    bench = Bench(tmp_path, ADVERSARIAL)
    bench.killed(5)

    kill = bench.resumed()
    monkeypatch.setenv("FORGET", "second")
    without = bench.resumed()
    models = {}
    for model in ("maker", "judge"):
        monkeypatch.setenv("FORGET", model)
        models[model] = bench.resumed()

    assert (kill.verdict, kill.resumed_at, kill.compared) == ("identical", 4, 4)
    assert (without.verdict, without.resumed_at) == ("different", 4)
    assert set(named(without)) == {"optimizer"}
    assert "6 of 12 values of the optimizer's state are not restored" in named(without)["optimizer"]
    for kill in models.values():  # all of a model that is as at the start agree with the first steps
        assert (kill.verdict, kill.resumed_at, set(named(kill))) == ("different", 4, {"parameters"})
        assert "of 4 parameters differ from those before step 4" in named(kill)["parameters"]
        assert "(as at the start)" in named(kill)["parameters"]


def test_nothing_is_left_in_the_working_folder(bench):
    """Scripts run in a copy."""
    assert sorted(os.listdir(bench.folder)) == ["left", "records", "train.py"]
