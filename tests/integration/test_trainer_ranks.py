"""Trainers on two ranks: both resume exactly, no false mismatch, the faulty rank is named, no hang."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from rank_support import launch, needs_gloo
from trainer_scripts import CHECKPOINT, SCRIPTS

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = needs_gloo
LIBRARIES = ("accelerate", "lightning", "transformers")
# The call of the layer, on each rank, that is the second execution of step 3: with `--replay 3`, step 0 is
# executed as the first, with a look at what it writes to, again, and as the step of one rank on both.
SECOND, ON_BOTH = 8, 9


@dataclass(frozen=True)
class Training:
    """A folder in which trainings of one library were run on two ranks, and what each rank printed."""

    library: str
    folder: Path
    printed: dict[int, str]

    def resumed(self, step: int, *options: object) -> dict[int, str]:
        """What each rank prints that goes on from the checkpoint of a step."""
        checkpoint = CHECKPOINT[self.library].format(step)
        return digests(train(self.library, self.folder, "--resume", checkpoint, *options))


def train(library: str, folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """Run the training of a library on two ranks."""
    (folder / "train.py").write_text(SCRIPTS[library])
    return launch(2, "train.py", *options, cwd=folder, OMP_NUM_THREADS="1")


def digests(done: subprocess.CompletedProcess[str]) -> dict[int, str]:
    """Rank -> the digest of its final state and of what it would draw next."""
    assert done.returncode == 0, done.stderr[-4000:]
    # Not by lines: two ranks that print at once may share one.
    printed = re.findall(r"rank (\d) (?:\w+ )?([0-9a-f]{32})", done.stdout)
    found = {int(rank): digest for rank, digest in printed}
    assert found.keys() == {0, 1}, done.stdout
    return found


@pytest.fixture(scope="module", params=LIBRARIES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A training that never stopped, with a checkpoint after each step: two in each of three epochs."""
    folder = tmp_path_factory.mktemp(request.param)
    return Training(request.param, folder, digests(train(request.param, folder)))


@pytest.mark.parametrize("step", [1, 2, 3])
def test_each_rank_resumes_with_the_same_bits(whole, step):
    """At the end of an epoch, and in its middle; the ranks draw other random numbers."""
    assert whole.resumed(step) == whole.printed


def test_a_guard_changes_no_bits_and_finds_nothing(whole, tmp_path):
    done = train(whole.library, tmp_path, "--replay", 2)

    assert digests(done) == whole.printed
    assert done.stdout.count("guarded") == 2


@pytest.mark.parametrize("fault", [SECOND, ON_BOTH])
def test_the_faulty_rank_is_named(whole, fault, tmp_path):
    """One bit on rank 1 is wrong when it executes a step again, or when both ranks execute one rank's."""
    done = train(whole.library, tmp_path, "--replay", 3, "--fault", fault, "--faulty", 1)

    told = [line for line in done.stderr.splitlines() if "ReplayMismatchError: step" in line]
    assert told, done.stderr[-4000:]  # a launcher may end a rank before it tells
    assert all("ReplayMismatchError: step 3, rank 1" in line for line in told), told


def test_a_rank_that_saves_alone_does_not_wait_for_ever(tmp_path):
    """Accelerate allows that, and its own checkpoint lacks the generators of the other rank, too."""
    alone = train("accelerate", tmp_path, "--alone")
    resumed = train("accelerate", tmp_path, "--resume", CHECKPOINT["accelerate"].format(2))

    digests(alone)
    assert "a checkpoint was saved without rank 1" in alone.stderr
    assert resumed.returncode == 1
    assert "rank 1 did not save when the others did" in resumed.stderr


@pytest.mark.parametrize("options", [("--workers", 2), ("--workers", 2, "--ends")], ids=str)
def test_lightning_resumes_with_workers(options, tmp_path):
    """They fetch batches as soon as their iterator is made, so the sampler must know the epoch by then."""
    training = Training("lightning", tmp_path, digests(train("lightning", tmp_path, *options)))

    assert training.resumed(2, *options) == training.printed


def test_accelerate_resumes_with_the_loader_of_samebits(tmp_path):
    training = Training("accelerate", tmp_path, digests(train("accelerate", tmp_path, "--own")))

    assert training.resumed(3, "--own") == training.printed


def test_transformers_is_told_of_its_own_option(tmp_path):
    """Its default makes a wrapper that the guard refuses."""
    done = train("transformers", tmp_path, "--unused", "--replay", 2)

    assert done.returncode == 1
    assert "ddp_find_unused_parameters=False" in done.stderr
