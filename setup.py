"""Builds the C parts. Without a C compiler samebits installs all the same and digests with torch."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

IS_WINDOWS = sys.platform == "win32"


class BuildPlainLibrary(build_ext):
    """Libraries that mark their exports in the code: one of them has no module initialiser to export."""

    def build_extensions(self) -> None:
        """Compile files side by side: the kernels are compiled whole for each instruction set."""
        compile_all = self.compiler.compile

        def compile_each(sources: list[str], *arguments: Any, **named: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = pool.map(lambda source: compile_all([source], *arguments, **named), sources)
                return [name for names in found for name in names]

        self.compiler.compile = compile_each
        super().build_extensions()

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Nothing beyond what the C code marks for export."""
        return list(ext.export_symbols)


# No operation may be fused, reordered or dropped: docs/reference/portable-numerics.md gives each its place.
EXACT = ("-g0", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno", "-fno-trapping-math")


def extension(name: str, folder: str, *flags: str) -> Extension:
    """All C files of a folder; no per-file flags: instruction sets are chosen inside the C code."""
    return Extension(
        name,
        sources=sorted(path.as_posix() for path in Path(folder).glob("*.c")),
        depends=sorted(path.as_posix() for path in Path(folder).glob("*.h")),
        extra_compile_args=["/O2"]
        if IS_WINDOWS
        else ["-O3", "-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra", *flags],
        extra_link_args=[] if IS_WINDOWS else ["-pthread", "-lm"],
        optional=True,
    )


def extensions() -> list[Extension]:
    """The plain libraries, and the module that needs Python's headers."""
    if sys.byteorder == "big":
        return []
    portable = [] if IS_WINDOWS else [extension("samebits._portable", "native/portable", *EXACT)]
    return [extension("samebits._native", "native"), extension("samebits._reader", "bindings"), *portable]


class CarryMessages(build_py):
    """An installed package carries the page of messages, which `samebits explain` reads."""

    def run(self) -> None:
        """Copy it; in an editable install it is read where it is written."""
        super().run()
        if not self.editable_mode:
            self.copy_file(
                "docs/reference/messages.md", os.path.join(self.build_lib, "samebits", "messages.md")
            )


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildPlainLibrary, "build_py": CarryMessages})
