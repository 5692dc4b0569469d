"""Builds the C parts. Without a C compiler samebits installs all the same and digests with torch."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

IS_WINDOWS = sys.platform == "win32"


class BuildPlainLibrary(build_ext):
    """Libraries that mark their exports in the code: one of them has no module initialiser to export."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Nothing beyond what the C code marks for export."""
        return list(ext.export_symbols)


def extension(name: str, folder: str) -> Extension:
    """All C files of a folder; no per-file flags: instruction sets are chosen inside the C code."""
    return Extension(
        name,
        sources=sorted(path.as_posix() for path in Path(folder).glob("*.c")),
        depends=sorted(path.as_posix() for path in Path(folder).glob("*.h")),
        extra_compile_args=["/O2"]
        if IS_WINDOWS
        else ["-O3", "-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra"],
        extra_link_args=[] if IS_WINDOWS else ["-pthread"],
        optional=True,
    )


def extensions() -> list[Extension]:
    """The plain library, and the module that needs Python's headers."""
    if sys.byteorder == "big":
        return []
    return [extension("samebits._native", "native"), extension("samebits._reader", "bindings")]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildPlainLibrary})
