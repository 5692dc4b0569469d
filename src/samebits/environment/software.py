"""Packages, loaded libraries, and the state of the script's repository."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NUMERIC = re.compile(
    r"^lib(mkl_|iomp|gomp|omp|openblas|scipy_openblas|blis|cblas|lapack|dnnl|cudart|cudnn|cublas|cusparse|cusolver"
    r"|cufft|curand|nccl|nvrtc|cuda\b|MIOpen|rocblas|hipblas|rccl|m-|m\.so|mvec)[^/]*\.(so|dylib)[^/]*$"
)
_GIT_SECONDS = 1.0


@dataclass(frozen=True)
class SourceFacts:
    """The repository that the script is in.

    Args:
        commit: that is checked out.
        changed: whether tracked files differ from it.
    """

    commit: str
    changed: bool


def collect_packages() -> dict[str, str]:
    """Return the version of each distribution of which a module is imported, standard library aside."""
    found = {}
    for name, module in list(sys.modules.items()):
        if "." in name or name.startswith("_") or name in sys.stdlib_module_names or name == "samebits":
            continue
        version = vars(module).get("__version__") if hasattr(module, "__dict__") else None
        if not isinstance(version, str):  # asking the module instead could run its code
            version = _installed_version(name) if getattr(module, "__spec__", None) else None
        if version:
            found[name] = version
    return dict(sorted(found.items()))


def collect_libraries() -> tuple[str, ...]:
    """Return the numeric libraries that are loaded: what is installed may be another version."""
    names = set()
    with suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            name = line.rstrip("\n").rpartition("/")[2]
            if _NUMERIC.match(name):
                names.add(name)
    return tuple(sorted(names))


def collect_source(directory: Path) -> SourceFacts | None:
    """Ask git for the commit of a directory; None if there is no git, no repository or no commit.

    Args:
        directory: in the repository.
    """
    # Git must neither refresh its index on disk nor start a monitor of the repository's files.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(directory)]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        answer = subprocess.run(
            command, capture_output=True, check=True, timeout=_GIT_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.decode(errors="replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    changed = any(not line.startswith("#") for line in lines)
    return None if commit == "(initial)" else SourceFacts(commit, changed)


def _installed_version(name: str) -> str | None:
    try:
        from importlib import metadata  # late: it imports twenty modules, and most packages need no question

        return metadata.version(name)
    except Exception:  # noqa: BLE001 - it is not installed, or a module of the script's stands for a standard one
        return None
