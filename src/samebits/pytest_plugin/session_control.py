"""Control of a whole pytest session: begun before user code is imported, then begun again for each test."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from samebits.determinism.context import deterministic
from samebits.errors import SamebitsError
from samebits.pytest_plugin.repeated_call import BEFORE_VARIABLE
from samebits.rng.seeds import check_seed
from samebits.switches.startup import LAYOUT
from samebits.switches.switch import LEFT_ALONE, Control
from samebits.switches.table import environment_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.determinism.context import Determinism

# Without address randomisation the interpreter would have to be started in another way; other processes, such
# as the workers of xdist, would not be.
_SWITCHES = {LAYOUT.name: LEFT_ALONE}


class SessionControl:
    """Control of the tests of this process.

    Args:
        seed: from which, with its node id, each test gets its own.

    Attributes:
        seed: the same.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._collecting: Determinism | None = deterministic(seed, switches=_SWITCHES, on_drift="ignore")

    def end_collection(self) -> None:
        """End the control under which conftest.py files and tests are imported."""
        if self._collecting is not None:
            self._collecting.restore()
            self._collecting = None

    @contextmanager
    def of_test(self, nodeid: str) -> Iterator[None]:
        """Put a test, with its setup and teardown, under control.

        Args:
            nodeid: of the test.
        """
        self.end_collection()
        with deterministic(test_seed(self.seed, nodeid), switches=_SWITCHES, on_drift="ignore"):
            yield


def test_seed(seed: int, nodeid: str) -> int:
    """Return the seed of a test, below 2**32; it depends on nothing but these."""
    digest = hashlib.blake2b(f"{seed}:{nodeid}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little")


def begin(config: pytest.Config) -> SessionControl:
    """Begin control, before user code is imported; if variables are missing, start pytest again with them.

    Args:
        config: pytest's, before conftest.py files are imported.

    Raises:
        UsageError: the seed is no seed, or it is too late: variables that count only when Python starts are
            missing, and pytest cannot be started again.
    """
    text = config.known_args_namespace.samebits_seed or config.getini("samebits_seed") or "0"
    try:
        seed = check_seed(int(text) if str(text).isdecimal() else text)
        control = Control(seed=seed, switches=tuple(_SWITCHES.items()))
        missing = dict(environment_for(control, os.environ).variables)
    except SamebitsError as error:
        raise pytest.UsageError(f"--samebits: {error}") from None
    if missing:
        _start_again(config, missing)
    return SessionControl(seed)


def _start_again(config: pytest.Config, missing: dict[str, str]) -> None:
    """Replace this process by the same pytest with more variables.

    Raises:
        UsageError: that is not possible.
    """
    obstacle = _obstacle(config)
    if obstacle:
        assignments = " ".join(f"{name}={value}" for name, value in missing.items())
        raise pytest.UsageError(
            f"--samebits: too late: {', '.join(missing)} must be set before Python starts, and {obstacle}; "
            f"set them in the environment ({assignments})"
        )
    before = {name: os.environ.get(name) for name in missing}
    environment = {**os.environ, **missing, BEFORE_VARIABLE: json.dumps(before)}
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()  # else the new process would write into its temporary files
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - no shell


def _obstacle(config: pytest.Config) -> str:
    """Say why pytest cannot be started again in place of this process; empty if it can."""
    if os.name != "posix":
        return "this system cannot replace a process"
    if BEFORE_VARIABLE in os.environ:
        return "pytest was started again already"
    given = [os.fspath(argument) for argument in config.invocation_params.args]
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    is_program = name in ("pytest", "py.test") or os.path.join("pytest", "__main__.py") in sys.argv[0]
    if not sys.executable or not is_program or given != sys.argv[1:]:
        return "pytest is not the program of this process (pytest.main, or a worker of xdist elsewhere)"
    return ""
