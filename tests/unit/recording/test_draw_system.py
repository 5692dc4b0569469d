"""What is kept of the things that come out of queues: their contents, the same in every process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from samebits.recording.probes.draw_system import contents


class Handle:
    """A thing of which nothing can be told."""


VALUES = [
    (1, 2.5, "a", None, b"x", True),
    {"x": [1, 2], "y": torch.arange(6.0)},
    np.arange(5),
    torch.ones(2, 3, dtype=torch.bfloat16).T,
]


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_equal_things_are_equal(number):
    assert contents(VALUES[number]) == contents(VALUES[number])
    assert len({contents(value) for value in VALUES}) == len(VALUES)


def test_another_number_anywhere_is_another_thing():
    assert contents((1, [2, {"a": torch.tensor(3)}])) != contents((1, [2, {"a": torch.tensor(4)}]))
    assert contents(np.array([0.0])) != contents(np.array([-0.0]))


def test_addresses_are_no_part_of_it():
    assert contents([Handle()]) == contents([Handle()])
    assert contents(np.array([Handle()])) == contents(np.array([Handle()]))
    assert contents(torch.empty(3, device="meta"))


def test_the_probe_does_not_import_torch_before_the_script_does():
    """What watches torch's import would come before what watches draws, and miss the seeds of the script."""
    code = "import sys, samebits.recording.probes.draws; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
