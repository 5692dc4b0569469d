"""The callbacks with the real Lightning, transformers, TRL and accelerate, in processes of their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from cli_support import environment, samebits
from trainer_scripts import CHECKPOINT, SCRIPTS

if TYPE_CHECKING:
    from pathlib import Path

# The call of the layer that is the second execution of a step: step 0 is executed three times, to see what it
# writes to, so with `--replay 3` step 3 is calls 6 and 7.
FAULT, REPLAY = 7, 3


@dataclass(frozen=True)
class Training:
    """A folder in which trainings of one library were run, and what the whole one printed."""

    library: str
    folder: Path
    printed: str

    def resumed(self, step: int, *options: str) -> subprocess.CompletedProcess[str]:
        """Go on from the checkpoint of a step."""
        return train(self.library, self.folder, "--resume", self.checkpoint(step), *options)

    def checkpoint(self, step: int) -> str:
        """Its path."""
        return CHECKPOINT[self.library].format(step)


def train(library: str, folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """Run the training of a library."""
    (folder / "train.py").write_text(SCRIPTS[library])
    command = [sys.executable, "train.py", *map(str, options)]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )


def digest_of(done: subprocess.CompletedProcess[str]) -> str:
    """The digest of the final state."""
    assert done.returncode == 0, done.stderr[-3000:]
    return next(line for line in done.stdout.splitlines() if line.startswith("digest "))


@pytest.fixture(scope="module", params=sorted(SCRIPTS))
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A training that never stopped, recorded, with a checkpoint after each step."""
    folder = tmp_path_factory.mktemp(request.param)
    return Training(request.param, folder, digest_of(train(request.param, folder, "--record", "run.sbr")))


def test_a_resumed_training_has_the_same_bits(whole):
    """In the middle of an epoch, at its last batch and at its end; dropout and the dataset draw.

    The record of the whole training is kept.
    """
    record = (whole.folder / "run.sbr").read_bytes()
    for step, kept in ((6, "run-2.sbr"), (8, "run-3.sbr")):
        done = whole.resumed(step, "--record", "run.sbr")
        assert digest_of(done) == whole.printed, step
        assert f"run.sbr is kept; this training is recorded in {kept}" in done.stderr
        assert (whole.folder / kept).exists()
    assert (whole.folder / "run.sbr").read_bytes() == record


def test_before_the_last_batch_too(whole):
    """Loaders of accelerate have fetched the last batch by then, and not used it."""
    assert digest_of(whole.resumed(7)) == whole.printed


def test_without_the_callback_it_differs(whole):
    """Otherwise the tests above would show nothing; the checkpoint is the library's own."""
    folder = whole.folder / "without"
    folder.mkdir(exist_ok=True)
    alone = digest_of(train(whole.library, folder, "--no"))
    assert alone == whole.printed  # the callback changes no bits

    assert digest_of(train(whole.library, folder, "--no", "--resume", whole.checkpoint(6))) != whole.printed


def test_two_records_are_identical(whole, tmp_path):
    """The same command twice; `compare` and `show` read what was recorded."""
    digest_of(train(whole.library, tmp_path, "--record", "run.sbr"))
    shutil.copy(whole.folder / "run.sbr", tmp_path / "first.sbr")
    compared = samebits("compare", "first.sbr", "run.sbr", cwd=tmp_path)
    shown = samebits("show", "run.sbr", cwd=tmp_path)

    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "identical" in compared.stdout
    assert "finished" in shown.stdout


def test_a_corrupted_step_is_found(whole, tmp_path):
    """One bit in the second execution of a step; without it, the training has the bits it had."""
    broken = train(whole.library, tmp_path, "--replay", REPLAY, "--fault", FAULT)
    fine = train(whole.library, tmp_path, "--replay", REPLAY)

    assert broken.returncode == 1
    assert "ReplayMismatchError: step 3" in broken.stderr, broken.stderr[-2000:]
    assert digest_of(fine) == whole.printed
    assert "guard " in fine.stdout


def test_a_recorded_script_is_not_recorded_twice(whole, tmp_path):
    """Under `samebits run` the record is that of the command."""
    (tmp_path / "train.py").write_text(SCRIPTS[whole.library])
    done = samebits("run", "--record", "outer.sbr", "train.py", "--record", "inner.sbr", cwd=tmp_path)

    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "outer.sbr").exists()
    assert not (tmp_path / "inner.sbr").exists()


@pytest.mark.parametrize("library", ["lightning", "accelerate"])
@pytest.mark.parametrize("options", [("--workers", "2"), ("--own",)], ids=["workers", "samebits loader"])
def test_other_loaders_resume_exactly(library, options, tmp_path):
    """Batches that workers load are loaded again and left out; samebits' loader knows its position."""
    training = Training(library, tmp_path, digest_of(train(library, tmp_path, *options)))

    assert digest_of(training.resumed(6, *options)) == training.printed


@pytest.mark.parametrize("library", ["lightning", "accelerate"])
def test_other_workers_are_refused(library, tmp_path):
    """They would draw other random numbers."""
    training = Training(library, tmp_path, digest_of(train(library, tmp_path)))
    done = training.resumed(6, "--workers", "2")

    assert done.returncode == 1
    assert "num_workers: 0 when it was saved and 2 now" in done.stderr


@pytest.mark.parametrize("options", [("--ends",), ("--ends", "--val"), ("--ends", "--val", "--workers", "2")])
def test_lightning_goes_on_from_the_end_of_an_epoch(options, tmp_path):
    """Where Lightning itself saves: with validation, which draws from the same generator, after that."""
    training = Training("lightning", tmp_path, digest_of(train("lightning", tmp_path, *options)))

    assert digest_of(training.resumed(4, *options)) == training.printed
    assert digest_of(training.resumed(8, *options)) == training.printed


def test_lightning_refuses_a_checkpoint_before_validation(tmp_path):
    """Lightning leaves that validation out when it resumes, and validation draws."""
    options = ("--val", "--every", "4")
    training = Training("lightning", tmp_path, digest_of(train("lightning", tmp_path, *options)))
    done = training.resumed(4, *options)

    assert done.returncode == 1
    assert "before the validation that followed" in done.stderr


def test_lightning_with_manual_optimization_is_refused(tmp_path):
    """Only the user's code knows where a step begins."""
    done = train("lightning", tmp_path, "--manual", "--replay", "2")

    assert done.returncode == 1
    assert "automatic optimization" in done.stderr


def test_transformers_with_evaluation_resumes_exactly(tmp_path):
    """The evaluation iterates over the same dataset object."""
    training = Training("transformers", tmp_path, digest_of(train("transformers", tmp_path, "--val")))

    assert digest_of(training.resumed(6, "--val")) == training.printed


def test_transformers_warns_of_workers(tmp_path):
    """The trainer does not load what it leaves out, so workers draw otherwise: that is said."""
    digest_of(train("transformers", tmp_path, "--workers", "2"))
    done = train("transformers", tmp_path, "--workers", "2", "--resume", "saved/checkpoint-6")

    assert "draws in workers differ" in done.stderr


def test_transformers_needs_attach_to_replay(tmp_path):
    """A callback is not told of training steps."""
    done = train("transformers", tmp_path, "--unattached", "--replay", "2")

    assert done.returncode == 1
    assert "attach(trainer)" in done.stderr


@pytest.mark.parametrize("library", ["lightning", "transformers", "accelerate"])
def test_a_missing_library_is_named(library):
    """One line says what to install, and `import samebits` imports none of them."""
    code = (
        "import sys, samebits; "
        f"print('{library}' in sys.modules); sys.modules['{library}'] = None; "
        f"import samebits.integrations.{library}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "False"
    assert done.stderr.splitlines()[-1].endswith(f"needs the package {library}: pip install {library}")
