"""The examples in plain Python: their twins differ, the published figures (same bits: test_same_bits.py)."""

import importlib.util
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
PUBLISHED = [
    10.655608,
    3.619526,
    1.653144,
    0.998996,
    0.712785,
    0.550969,
    0.444072,
    0.368025,
    0.311668,
    0.268116,
]
# Script, arguments of the twin: short, for two cores.
TWINS = {
    "line_fit": ["--steps", "200"],
    "cifar10": ["--images", "200", "--augment"],
    "digits": ["--epochs", "1", "--split-by-set"],
    "char_gpt": ["--steps", "3", "--warmup-seconds", "2"],
}


def run(name: str, arguments: list[str]) -> str:
    """Run an example in a fresh process and return its output."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def train(name: str, arguments: list[str], folder: Path) -> tuple[str, bytes]:
    """Run an example; return its output and the bits of its weights."""
    file = folder / "weights.pt"
    output = run(name, [*arguments, "--save", str(file)])
    weights = torch.load(file)
    return output, b"".join(tensor.numpy().tobytes() for tensor in weights.values())


@pytest.mark.parametrize("name", TWINS)
def test_the_twin_differs(name, tmp_path):
    """With its flag an example ends with other weights."""
    arguments = TWINS[name]

    first, second = train(name, arguments, tmp_path), train(name, arguments, tmp_path)

    assert first[1] != second[1]


def test_line_fit_gives_the_published_losses():
    """With seed 3 the losses are those of a published CUDA run."""
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", run("line_fit", ["--seed", "3"]))]

    assert losses == pytest.approx(PUBLISHED, rel=1e-5)


def write_cifar10(folder: Path, count: int) -> None:
    """Write batches as the published archive holds them: bytes keys, rows of 3072 bytes, a list of labels."""
    random = np.random.default_rng(0)
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        batch = {
            b"batch_label": name.encode(),
            b"labels": random.integers(0, 10, count).tolist(),
            b"data": random.integers(0, 256, (count, 3072), dtype=np.uint8),
            b"filenames": [b"x.png"] * count,
        }
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))


def test_cifar10_reads_the_standard_batches(tmp_path):
    """`--data` trains on the five batches and tests on the sixth."""
    write_cifar10(tmp_path, 100)

    output = run("cifar10", ["--data", str(tmp_path)])

    assert re.findall(r"step +(\d+)", output) == ["100"]
    assert "test accuracy" in output


def load_example(name: str):
    """Import an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cifar10_keeps_order_and_layout(tmp_path):
    """Batches are read in order, channels first."""
    write_cifar10(tmp_path, 3)
    with (tmp_path / "data_batch_2").open("rb") as file:
        second = pickle.load(file, encoding="bytes")

    images, labels = load_example("cifar10").read_cifar10(tmp_path, train=True)

    assert images.shape == (15, 3, 32, 32)
    assert images.dtype == np.uint8
    assert np.array_equal(images[3:6].reshape(3, 3072), second[b"data"])
    assert labels[3:6].tolist() == second[b"labels"]


def test_cifar10_refuses_a_hostile_batch(tmp_path):
    """A pickle that would call a function is refused before it can."""
    marker = tmp_path / "marker"

    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(marker),)

    write_cifar10(tmp_path, 1)
    (tmp_path / "test_batch").write_bytes(pickle.dumps({b"data": Hostile(), b"labels": [1]}))

    with pytest.raises(pickle.UnpicklingError, match="does not belong in a CIFAR-10 batch"):
        load_example("cifar10").read_cifar10(tmp_path, train=False)
    assert not marker.exists()
