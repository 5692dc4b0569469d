"""The fidelity table: a script under samebits does what it does under bare Python.

Each row runs under bare Python, in a child as `samebits.recording.launch` starts it but without recording,
and launched and recorded; what can be seen from outside must be the same. A few rows go through the command
line too. More rows: `test_fidelity_more.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from fidelity_rows import DIFFERENT, ROWS, Row
from fidelity_sources import WRAPPED
from fidelity_support import seen, work_folder, write

if TYPE_CHECKING:
    from pathlib import Path

IN_FULL = ("arguments", "exit 3", "traceback", "interrupt", "killed by SIGTERM", "module", "pool by spawn")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the script is run."""
    return work_folder(tmp_path)


ZEROS = """
import torch
x = torch.nn.Parameter(torch.ones(4, 4))
optimizer = torch.optim.SGD([x], lr=0.1)
for step in range(2):
    first, = torch.autograd.grad(x.abs(), x, torch.ones(4, 4), create_graph=True)
    zeros, = torch.autograd.grad(first, x, torch.ones(4, 4))
    print(zeros[1:].view(torch.int32).sum(), zeros[1:].clone(), zeros.detach(), zeros._is_zerotensor())
    x.grad = zeros
    optimizer.step()
"""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_same_as_bare_python(row: Row, folder: Path) -> None:
    """Output, errors and exit status are those of bare Python."""
    if sys.version_info < row.since:
        pytest.skip(f"new in Python {row.since}")
    write(row, folder)
    expected = seen(row, folder, "bare")
    assert seen(row, folder, "runner") == expected
    assert seen(row, folder, "launched") == expected


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in IN_FULL], ids=lambda row: row.name)
def test_same_on_the_command_line(row: Row, folder: Path) -> None:
    """`samebits run` adds nothing but its own last line."""
    write(row, folder)
    expected = seen(row, folder, "bare")
    assert seen(row, folder, "command") == expected


@pytest.mark.parametrize("way", ["controlled", "op level"])
def test_a_traceback_goes_through_wrappers(folder: Path, way: str) -> None:
    """What control and the recording of ops put around functions has no frame, in no link of the chain."""
    row = next(row for row in ROWS if row.files.get("probe.py") == WRAPPED)
    write(row, folder)
    expected = seen(row, folder, "bare")
    assert expected[1].count(b"Traceback") == 3
    assert seen(row, folder, way) == expected


def test_zeros_without_memory_at_op_level(folder: Path) -> None:
    """Second derivatives return such tensors; the recording of ops takes them for no class of their own."""
    row = Row("zeros", {"probe.py": ZEROS})
    write(row, folder)
    assert seen(row, folder, "op level") == seen(row, folder, "bare")


@pytest.mark.parametrize("row", DIFFERENT, ids=lambda row: row.name)
def test_known_difference(row: Row, folder: Path) -> None:
    """What is listed as different still is, apart from stdout and the status; else the list is too long."""
    write(row, folder)
    bare, ours = seen(row, folder, "bare"), seen(row, folder, "runner")
    assert (ours[0], ours[2]) == (bare[0], bare[2])
    assert ours[1] != bare[1]
