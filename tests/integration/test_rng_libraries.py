"""Real libraries under control, in fresh processes: the same draws each time, others for another seed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from cli_support import environment

if TYPE_CHECKING:
    from pathlib import Path

PROLOGUE = """
import sys
from samebits.rng import states
from samebits.switches.switch import Control
from samebits.rng.unseeded_generators import GeneratorControl
from samebits.rng.active import PROCESS, Active

def activate(seed):
    active = Active(Control(seed=seed), seed)
    PROCESS.push(active)
    GeneratorControl(active).install()
    states.seed_sources(seed)

if sys.argv[1:]:
    activate(int(sys.argv[1]))
"""

NUMPY = """
import numpy as np  # the generator begins to exist at its first use
print(np.random.rand(), np.random.default_rng().random(), np.random.permutation(9))
"""
TORCH = """
import torch
print(torch.rand(3), torch.seed())
"""
PYTHON = """
import random
from random import Random, random as draw
print(draw(), Random().random())
"""
OPENCV = """
import cv2, numpy
print(cv2.randu(numpy.zeros((2, 2)), 0, 1).tolist())
"""
ALBUMENTATIONS = """
import albumentations, numpy
compose = albumentations.Compose([
    albumentations.RandomCrop(8, 8), albumentations.GaussNoise(p=1), albumentations.HorizontalFlip(p=0.5),
    albumentations.CoarseDropout(p=1), albumentations.RandomBrightnessContrast(p=1),
])
image = numpy.arange(16 * 16 * 3, dtype=numpy.uint8).reshape(16, 16, 3)
print([int(compose(image=image)["image"].astype(int).sum()) for _ in range(5)])
"""
SKLEARN = """
from sklearn.model_selection import train_test_split
from sklearn.cluster import KMeans
import numpy
points = numpy.arange(40.0).reshape(20, 2) ** 1.5
print(train_test_split(points, test_size=3)[1].tolist(), KMeans(3, n_init=1).fit(points).inertia_)
"""
SCIPY = """
import scipy.stats
print(scipy.stats.norm.rvs(size=3), scipy.stats.qmc.Sobol(2).random(2))
"""
ACCELERATE = """
import torch
from accelerate import Accelerator, DataLoaderConfiguration
data = torch.utils.data.TensorDataset(torch.arange(10))
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
loader = accelerator.prepare(torch.utils.data.DataLoader(data, batch_size=5, shuffle=True))
print([batch[0].tolist() for epoch in range(2) for batch in loader])
"""
SCRIPTS = {
    "numpy": NUMPY,
    "torch": TORCH,
    "python": PYTHON,
    "opencv": OPENCV,
    "albumentations": ALBUMENTATIONS,
    "scikit-learn": SKLEARN,
    "scipy": SCIPY,
    "accelerate": ACCELERATE,
}


def run(folder: Path, script: str, *arguments: str) -> str:
    """What the script prints under control with that seed, or without control."""
    path = folder / "script.py"
    path.write_text(PROLOGUE + textwrap.dedent(script))
    done = subprocess.run(
        [sys.executable, path, *arguments],
        capture_output=True, text=True, check=False, env=environment(NO_ALBUMENTATIONS_UPDATE="1"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What each library's script prints with seeds 3, 3 and 4, and twice without control.

    All in one process, each library imported when its turn comes: importing them is what takes the time.
    """
    script = "".join(f"print({'== ' + name!r}){source}" for name, source in SCRIPTS.items())
    found: dict[str, list[str]] = {name: [] for name in SCRIPTS}
    for arguments in (["3"], ["3"], ["4"], [], []):
        output = run(tmp_path_factory.mktemp("libraries"), script, *arguments)
        for section in output.split("== ")[1:]:
            name, _, text = section.partition("\n")
            found[name].append(text)
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_library_imported_after_the_seed_is_controlled(name, printed):
    """Twice the same with one seed, something else with another."""
    first, second, other, *_ = printed[name]

    assert first == second != other
    assert first.strip()


@pytest.mark.parametrize("name", sorted(SCRIPTS.keys() - {"opencv"}))
def test_without_control_it_varies(name, printed):
    """Otherwise the test above would show nothing. OpenCV starts from a constant."""
    *_, first, second = printed[name]

    assert first != second


def test_opencv_is_seeded_at_its_import_only(tmp_path):
    seeded = "import cv2; cv2.setRNGSeed(3)\n" + OPENCV

    assert run(tmp_path, OPENCV, "3") == run(tmp_path, seeded)
    assert run(tmp_path, seeded, "4") == run(tmp_path, seeded)


def test_the_scripts_own_seeds_win(tmp_path):
    script = """
    import random, numpy, torch
    random.seed(7), numpy.random.seed(7), torch.manual_seed(7)
    print(random.random(), numpy.random.rand(), torch.rand(2), numpy.random.default_rng(7).random())
    """

    assert run(tmp_path, script, "3") == run(tmp_path, script, "4") == run(tmp_path, script)


def test_augmentation_inside_isolated_leaves_no_trace(tmp_path):
    """Generators of a library's objects are found while they are alive."""
    script = (
        ALBUMENTATIONS
        + """
def draw():
    return [int(compose(image=image)["image"].astype(int).sum()) for _ in range(5)]
with states.isolated():
    inside = draw()
print(inside == draw() != draw())
"""
    )

    assert run(tmp_path, script, "3").splitlines()[-1] == "True"


def test_compiled_code_draws_the_same_when_reseeded(tmp_path):
    """Control leaves `torch.compile` alone."""
    script = """
    import torch
    @torch.compile(backend="aot_eager")
    def f(x):
        return torch.nn.functional.dropout(x)
    found = []
    for _ in range(2):
        with states.reseeded("dropout"):
            found.append(f(torch.ones(50)))
    print(torch.equal(*found), torch.equal(found[0], f(torch.ones(50))), torch.Generator().seed())
    """
    printed = run(tmp_path, script, "3")

    assert printed.startswith("True False ")
    assert printed == run(tmp_path, script, "3")
