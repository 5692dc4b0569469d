"""Builds the C parts. Without a C compiler samebits installs all the same and digests with torch.

The variable `SAMEBITS_BUILD` chooses: `pure` compiles nothing, which makes a wheel for every platform, and
`native` fails where something does not compile. Without it, what compiles is used.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

IS_WINDOWS = sys.platform == "win32"
BUILD = os.environ.get("SAMEBITS_BUILD", "")
# The oldest Python whose limited API the module uses: one build works from there on. The free-threaded Python
# has no limited API, so a build for it is for one release.
LIMITED_API, LIMITED_TAG = "0x030A0000", "cp310"
IS_LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")


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

    def copy_extensions_to_source(self) -> None:
        """Put the libraries into a checkout; take out older ones, whose endings Python would prefer."""
        super().copy_extensions_to_source()
        package = self.get_finalized_command("build_py").get_package_dir("samebits")
        for ext in self.extensions:
            built = os.path.basename(self.get_ext_filename(ext.name))
            for path in Path(package).glob(f"{ext.name.rpartition('.')[2]}.*"):
                if path.suffix in {".so", ".pyd"} and path.name != built:
                    path.unlink()


# No operation may be fused, reordered or dropped: docs/reference/portable-numerics.md gives each its place.
EXACT = ("-g0", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno", "-fno-trapping-math")


def extension(name: str, folder: str, *flags: str) -> Extension:
    """All C files of a folder; no per-file flags: instruction sets are chosen inside the C code."""
    return Extension(
        name,
        sources=sorted(path.as_posix() for path in Path(folder).glob("*.c")),
        # Of all folders: they include from each other.
        depends=sorted(path.as_posix() for top in ("native", "bindings") for path in Path(top).rglob("*.h")),
        define_macros=[("Py_LIMITED_API", LIMITED_API)] if IS_LIMITED else [],
        py_limited_api=IS_LIMITED,
        extra_compile_args=["/O2"]
        if IS_WINDOWS
        else ["-O3", "-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra", *flags],
        extra_link_args=[] if IS_WINDOWS else ["-pthread", "-lm"],
        optional=BUILD != "native",
    )


def extensions() -> list[Extension]:
    """The plain libraries, and the module that needs Python's headers."""
    if sys.byteorder == "big" or BUILD == "pure":
        return []
    portable = (
        []
        if IS_WINDOWS
        else [
            extension("samebits._portable", "native/portable", *EXACT),
            extension("samebits._ops", "bindings/ops", *EXACT),
        ]
    )
    return [extension("samebits._native", "native"), extension("samebits._reader", "bindings"), *portable]


# Where `samebits._cuda.sources` looks for what a compiler of CUDA gets.
CUDA_SOURCES = ("*.h", "cuda/*.cu", "cuda/*.h", "cuda/freestanding/*.h", "portable/*.h")


def cuda_sources() -> list[str]:
    """All that it finds, by names in `native`."""
    native = Path("native")
    return sorted(path.relative_to(native).as_posix() for each in CUDA_SOURCES for path in native.glob(each))


class CarryFiles(build_py):
    """An installed package carries files that a checkout has elsewhere.

    They are the page of messages, which `samebits explain` reads, and the kernels that a GPU's compiler gets.
    """

    def run(self) -> None:
        """Copy them; in an editable install they are read where they are written."""
        super().run()
        if self.editable_mode:
            return
        package = os.path.join(self.build_lib, "samebits")
        self.copy_file("docs/reference/messages.md", os.path.join(package, "messages.md"))
        for name in cuda_sources():
            target = os.path.join(package, "_cuda", "sources", name)
            self.mkpath(os.path.dirname(target))
            self.copy_file(os.path.join("native", name), target)


if BUILD not in {"", "pure", "native"}:
    sys.exit(f"SAMEBITS_BUILD={BUILD} is not known: expected pure or native")
modules = extensions()
setup(
    ext_modules=modules,
    cmdclass={"build_ext": BuildPlainLibrary, "build_py": CarryFiles},
    options={"bdist_wheel": {"py_limited_api": LIMITED_TAG}} if modules and IS_LIMITED else {},
)
