"""Fresh processes for benches, with samebits compiled to byte code as an installer leaves it."""

from __future__ import annotations

import compileall
import importlib.util
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def compile_package() -> None:
    """Compile what is not compiled yet: a machine that never writes byte code would measure the compiler."""
    spec = importlib.util.find_spec("samebits")
    assert spec is not None
    assert spec.origin is not None
    compileall.compile_dir(Path(spec.origin).parent, quiet=1)


def output_of(command: Sequence[str]) -> str:
    """Run a command in an environment that may write byte code, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout
