"""Executes real notebooks in a kernel of their own, as `jupyter execute` does, and reads what they show."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import nbformat
from cli_support import environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Another process, because nbclient sets signal handlers and makes event loops.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
path, folder = sys.argv[1:]
notebook = nbformat.read(path, as_version=4)
client = NotebookClient(
    notebook, timeout=300, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": folder}}
)
client.execute()
nbformat.write(notebook, path)
"""
SETUP = """
%load_ext samebits
import os, random, sys, time
import numpy as np
import torch

def make():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

def fit(inputs):
    for x in inputs:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss

model, optimizer = make()
"""


@dataclass(frozen=True)
class Shown:
    """What a cell shows.

    Args:
        number: of the cell, as in `In[3]`.
        source: of the cell.
        outputs: all of them, in order.
    """

    number: int
    source: str
    outputs: tuple[dict[str, Any], ...]

    @property
    def out(self) -> str:
        """Its standard output."""
        return self._stream("stdout")

    @property
    def err(self) -> str:
        """Its standard error."""
        return self._stream("stderr")

    @property
    def results(self) -> list[str]:
        """What its expressions gave, as text."""
        return [each["data"]["text/plain"] for each in self._of("execute_result")]

    @property
    def figures(self) -> int:
        """The number of pictures."""
        return sum("image/png" in each["data"] for each in self._of("display_data"))

    @property
    def errors(self) -> list[str]:
        """Its tracebacks, without colours."""
        texts = ["\n".join(each["traceback"]) for each in self._of("error")]
        return [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in texts]

    def line(self, mark: str) -> str:
        """What reports call the line of the cell that holds a text."""
        lines = self.source.splitlines()
        return f"Cell In[{self.number}], line {next(n for n, text in enumerate(lines, 1) if mark in text)}"

    def _stream(self, name: str) -> str:
        return "".join(each["text"] for each in self._of("stream") if each["name"] == name)

    def _of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.outputs if each["output_type"] == kind]


def run_notebook(folder: Path, cells: Sequence[str], *, setup: str = SETUP, **variables: str) -> list[Shown]:
    """Execute a notebook and return what its cells show, without the first, which sets it up.

    Args:
        folder: in which the notebook is, and its kernel works.
        cells: their sources; indentation is taken away.
        setup: the first cell.
        variables: of the environment of the kernel.
    """
    sources = [textwrap.dedent(cell).strip("\n") for cell in (setup, *cells)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    path = folder / "notebook.ipynb"
    nbformat.write(notebook, path)
    quiet = {"IPYTHONDIR": str(folder / "ipython"), "JUPYTER_CONFIG_DIR": str(folder / "jupyter")}
    variables_of_kernel = environment(**quiet, **variables)
    variables_of_kernel.pop("PYTEST_CURRENT_TEST", None)  # a kernel that finds it hides children
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(path), str(folder)],
        capture_output=True,
        text=True,
        timeout=400,
        env=variables_of_kernel,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = [
        Shown(cell["execution_count"], "".join(cell["source"]), tuple(cell["outputs"]))
        for cell in json.loads(json.dumps(nbformat.read(path, as_version=4)))["cells"]
    ]
    assert shown[0].errors == [], shown[0].errors
    return shown[1:]
