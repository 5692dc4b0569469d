"""The numeric libraries that a process has loaded, and of which build each is.

Wheels of several versions hold files of the same name (`libcublas.so.13`), and what is installed need not be
what is loaded.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum
from samebits.environment._elf import read_build_id
from samebits.environment.packages import owners

if TYPE_CHECKING:
    from collections.abc import Iterable


class LibraryKind(StrEnum):
    """What a library is for. One kind may consist of many files."""

    CUBLAS = "cublas"
    CUDNN = "cudnn"
    NCCL = "nccl"
    CUSOLVER = "cusolver"
    CUSPARSELT = "cusparselt"
    CUSPARSE = "cusparse"
    CUFFT = "cufft"
    CURAND = "curand"
    NVRTC = "nvrtc"
    NVSHMEM = "nvshmem"
    CUDA_RUNTIME = "cudart"
    CUDA_DRIVER = "cuda"
    MIOPEN = "miopen"
    ROCBLAS = "rocblas"
    RCCL = "rccl"
    ROCM = "rocm"
    MKL = "mkl"
    ONEDNN = "onednn"
    BLAS = "blas"
    OPENMP = "openmp"
    MATHS = "m"


# The beginnings of the names of files, after `lib`. The first that fits counts.
_BEGINNINGS = {
    LibraryKind.CUBLAS: "cublas",
    LibraryKind.CUDNN: "cudnn",
    LibraryKind.NCCL: "nccl",
    LibraryKind.CUSOLVER: "cusolver",
    LibraryKind.CUSPARSELT: "cusparseLt",
    LibraryKind.CUSPARSE: "cusparse",
    LibraryKind.CUFFT: "cufft",
    LibraryKind.CURAND: "curand",
    LibraryKind.NVRTC: "nvrtc|nvJitLink",
    LibraryKind.NVSHMEM: "nvshmem",
    LibraryKind.CUDA_RUNTIME: "cudart",
    LibraryKind.CUDA_DRIVER: r"cuda\b",
    LibraryKind.MIOPEN: "MIOpen",
    LibraryKind.ROCBLAS: "rocblas|hipblas",
    LibraryKind.RCCL: "rccl",
    LibraryKind.ROCM: "rocsolver|hipsolver|rocfft|hipfft|rocsparse|hipsparse|rocrand|hiprand",
    LibraryKind.MKL: "mkl_",
    LibraryKind.ONEDNN: "dnnl",
    LibraryKind.BLAS: "openblas|scipy_openblas|blis|cblas|lapack",
    LibraryKind.OPENMP: "iomp|gomp|omp",
    LibraryKind.MATHS: "m-|mvec",
}
_PATTERNS = tuple(
    (kind, re.compile(rf"lib(?:{beginning})[^/]*\.(?:so|dylib)")) for kind, beginning in _BEGINNINGS.items()
)
_NCCL = ("libnccl.so.2", "librccl.so.1")
_DELETED = " (deleted)"  # after the path of a file that was removed or replaced while it was in use


@dataclass(frozen=True, order=True, slots=True)
class Library:
    """A loaded library.

    Args:
        file: its name.
        build: its build ID, in hexadecimal digits; empty where it has none.
        size: of the file in bytes; 0 where it cannot be read.
        package: the installed package that it came with, by normalised name; empty where there is none, or
            nobody looked.
        version: of that package.
    """

    file: str
    build: str = ""
    size: int = 0
    package: str = ""
    version: str = ""


def kind_of(file: str) -> LibraryKind | None:
    """Return the kind of a library by the name of its file; None for one that is not numeric."""
    return next((kind for kind, pattern in _PATTERNS if pattern.match(file)), None)


def collect_libraries(*, with_packages: bool = False) -> tuple[Library, ...]:
    """Return the numeric libraries that are loaded; none where the system has no `/proc/self/maps`.

    Args:
        with_packages: look for the packages that they came with, which reads the list of files of each one.
    """
    paths = _loaded_files()
    owned = owners(paths) if with_packages else {}
    return tuple(sorted({_describe(path, *owned.get(path, ("", ""))) for path in paths}))


def _loaded_files() -> frozenset[str]:
    return frozenset(path for path in _mapped_files() if kind_of(os.path.basename(path)) is not None)


def _mapped_files() -> Iterable[str]:
    with suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            _, slash, path = line.rstrip("\n").partition("/")
            if slash:
                yield f"/{path}"


def _describe(path: str, package: str, version: str) -> Library:
    build, size, name = "", 0, os.path.basename(path)
    if path.endswith(_DELETED):  # the file that has this path now is another one
        return Library(name.removesuffix(_DELETED))
    with suppress(OSError), open(path, "rb") as file:
        size, build = os.fstat(file.fileno()).st_size, read_build_id(file)
    return Library(name.encode(errors="replace").decode(), build, size, package, version)


def nccl_version() -> str:
    """Return the version that the loaded library of NCCL or RCCL tells; empty if none is loaded.

    `torch.cuda.nccl.version()` tells the one that torch was built with: 2.30.7 where NCCL 2.31.2 was loaded
    (measured, torch 2.15.0). No GPU is needed to ask.
    """
    if sys.platform == "win32":
        return ""
    import ctypes  # late: scripts without torch need no foreign functions

    version = ctypes.c_int()
    for name in _NCCL:
        with suppress(OSError, AttributeError):  # it is not loaded
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW).ncclGetVersion(ctypes.byref(version))
            return _nccl_release(version.value)
    return ""


def _nccl_release(code: int) -> str:
    """Return a version as its release is called (nccl.h, `NCCL_VERSION`)."""
    major, rest = divmod(code, 10_000 if code >= 10_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"
