"""The examples under one seed, each twice, and once with another; `bench/twins.py` runs the whole table."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import samebits

from samebits.comparison import compare_records

EXAMPLES = Path(__file__).parents[2] / "examples"
TWINS = [
    ("line_fit", ["--steps", "50"]),
    ("char_gpt", ["--steps", "4"]),
    ("digits", ["--epochs", "1", "--split-by-set", "--workers", "1"]),
    ("cifar10", ["--images", "80", "--augment", "--workers", "0"]),
    ("cifar10", ["--images", "80", "--augment", "--workers", "2", "--start-method", "fork"]),
    ("cifar10", ["--images", "80", "--augment", "--workers", "2", "--start-method", "spawn"]),
]


@pytest.mark.parametrize(
    ("example", "arguments"), TWINS, ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_examples_are_identical_with_one_seed(tmp_path, example, arguments):
    """Also those that are irreproducible in plain Python."""
    for seed, name in ((3, "a"), (3, "b"), (4, "c")):
        script = [EXAMPLES / f"{example}.py", *arguments]
        words = ("run", "--seed", seed, "--reseed", "--record", f"{name}.sbr", *script)
        done = samebits(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    assert compare_records(tmp_path / "a.sbr", tmp_path / "b.sbr").verdict == "identical"
    assert compare_records(tmp_path / "a.sbr", tmp_path / "c.sbr").verdict == "different"
