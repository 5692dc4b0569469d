"""Shared libraries of a chosen name and build, made of one that this process has loaded."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from samebits.environment._elf import read_build_id


def _original() -> tuple[bytes, str]:
    """Return the smallest loaded library that has a build ID, and that ID."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {Path(line.partition("/")[1] + line.partition("/")[2]) for line in lines if ".so" in line}
    there = [each for each in paths if each.exists()]  # another test may have deleted what it loaded
    for path in sorted(there, key=lambda each: each.stat().st_size):
        with path.open("rb") as file:
            build = read_build_id(file)
        if build and path.name.startswith(("libm.", "libz.", "libdl.", "libutil.", "librt.", "libpthread.")):
            return path.read_bytes(), build
    raise LookupError("no loaded library has a build ID")


def make_library(path: Path, build: str) -> None:
    """Write a library that can be loaded.

    Args:
        path: of its file.
        build: two hexadecimal digits of which its build ID consists.
    """
    data, old = _original()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.replace(bytes.fromhex(old), bytes.fromhex(build * (len(old) // 2))))


def install_library(site: Path, name: str, version: str, file: str, build: str) -> Path:
    """Write a package of one library, as the wheels of NVIDIA are, and return the path of the library.

    Args:
        site: folder of packages.
        name: of the package, as in the names of files.
        version: of the package.
        file: of the library, relative to the folder.
        build: as of `make_library`.
    """
    path, info = site / file, site / f"{name}-{version}.dist-info"
    make_library(path, build)
    info.mkdir(parents=True)
    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"{file},sha256={digest},{path.stat().st_size}\n")
    return path
