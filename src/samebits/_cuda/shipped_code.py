"""Machine code that a release brings, made from the same sources: a user's machine then needs no compiler.

`native/cuda/compile.py` makes the archive before a wheel is built. A checkout has none, unless somebody made
it there.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ARCHIVE = os.path.join(os.path.dirname(__file__), "kernels.zip")
CAPABILITIES = ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0))
"""Those that there is machine code for."""
ASSEMBLER_FROM = CAPABILITIES[0]
"""From there on a driver makes machine code of the assembler (PTX) for whatever device it drives."""


def member(key: str, capability: tuple[int, int] | None) -> str:
    """Return the name in the archive of a program's machine code, or of its assembler for None."""
    return f"{key}.ptx" if capability is None else f"{key}.sm_{capability[0]}{capability[1]}.cubin"


def shipped_code(key: str, capability: tuple[int, int], archive: str = ARCHIVE) -> Iterator[bytes]:
    """Yield what the driver of a device may take, the best first; nothing where the sources are others.

    Machine code works on devices of the same major capability and the same or a higher minor one ("CUDA C++
    Programming Guide", section "Binary Compatibility", release 12.9).

    Args:
        key: of the program.
        capability: of the device.
        archive: the file; one that is missing or damaged has nothing.
    """
    major, minor = capability
    exact = [each for each in reversed(CAPABILITIES) if each[0] == major and each[1] <= minor]
    wanted = [member(key, each) for each in exact]
    if capability >= ASSEMBLER_FROM:
        wanted.append(member(key, None))
    for name in wanted:
        code = _read(archive, name)
        if code is not None:
            yield code


def _read(archive: str, name: str) -> bytes | None:
    try:
        with zipfile.ZipFile(archive) as held:
            return held.read(name)
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error, EOFError):
        return None
