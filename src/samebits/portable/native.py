"""The C library of the kernels, loaded with ctypes."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ABI = 2
BACKEND_VARIABLE = "SAMEBITS_PORTABLE_BACKEND"
_PREFIX = "samebits_portable_"


class Kernels:
    """The C kernels, on one instruction set at a time.

    Args:
        library: native/portable, of this version.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._functions: dict[str, Callable[[Sequence[int], Sequence[float]], int]] = {}
        self._wanted_threads: Callable[[], int] | None = None
        self._threads = 1
        library.samebits_portable_isa.restype = ctypes.c_char_p
        library.samebits_portable_select.argtypes = [ctypes.c_char_p]
        library.samebits_portable_share_threads.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.samebits_portable_share_threads.restype = None

    def select(self, isa: str) -> bool:
        """Use `avx512`, `avx2`, `neon`, `scalar`, or the best (empty) from now on; False if it cannot."""
        return bool(self._library.samebits_portable_select(isa.encode()))

    @property
    def isa(self) -> str:
        """The instruction set in use."""
        return bytes(self._library.samebits_portable_isa()).decode()

    def share_threads(self, entry: int, number: int) -> None:
        """Run on the threads of the OpenMP library with `GOMP_parallel` and `omp_get_thread_num` there."""
        self._library.samebits_portable_share_threads(entry, number)

    def set_threads(self, count: int) -> None:
        """Use this many threads from now on, whatever `follow` was told."""
        self._wanted_threads = None
        self._use_threads(count)

    def follow(self, wanted: Callable[[], int]) -> None:
        """Ask at each call how many threads to use.

        Args:
            wanted: `torch.get_num_threads`; it takes about 50 ns.
        """
        self._wanted_threads = wanted

    def _use_threads(self, count: int) -> None:
        self._library.samebits_portable_set_threads(count)
        self._threads = count

    def call(self, name: str, words: Sequence[int], scalars: Sequence[float] = ()) -> None:
        """Call `samebits_portable_NAME(words, scalars)` (native/portable/portable.h).

        Raises:
            MemoryError: if a kernel got no memory.
        """
        function = self._functions.get(name) or self._bind(name)
        wanted = self._wanted_threads
        if wanted is not None:
            count = wanted()
            if count != self._threads:
                self._use_threads(count)
        if function(words, scalars):
            raise MemoryError(name)

    def _bind(self, name: str) -> Callable[[Sequence[int], Sequence[float]], int]:
        function = self._functions[name] = caller_of(getattr(self._library, _PREFIX + name))
        return function


def caller_of(kernel: Any) -> Callable[[Sequence[int], Sequence[float]], int]:
    """What calls a kernel with words and scalars: the C module, whose conversions are faster, or ctypes.

    Args:
        kernel: a function of the library.
    """
    from samebits.digest.bindings import load_module

    module = load_module()
    if module is not None:
        return functools.partial(module.call_kernel, ctypes.cast(kernel, ctypes.c_void_p).value)
    kernel.argtypes, kernel.restype = [ctypes.c_char_p, ctypes.c_char_p], ctypes.c_int64

    def call(words: Sequence[int], scalars: Sequence[float]) -> int:
        packed = struct.pack(f"{len(words)}q", *words), struct.pack(f"{len(scalars)}d", *scalars)
        return int(kernel(*packed))

    return call


def find_library() -> Path | None:
    """The file that setup.py built, None if this installation has none."""
    package = Path(__file__).resolve().parent.parent
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = package / f"_portable{suffix}"
        if path.exists():
            return path
    return None


def open_library(path: Path) -> Kernels | None:
    """Load the library; None when this machine cannot use it or it belongs to another version."""
    try:
        library = ctypes.CDLL(str(path))
        return Kernels(library) if library.samebits_portable_abi() == ABI else None
    except (OSError, AttributeError):
        return None


@functools.cache
def load() -> Kernels | None:
    """The kernels this process uses, None for the reference.

    Raises:
        SamebitsError: if the variable `SAMEBITS_PORTABLE_BACKEND` asks for kernels that are not there.
    """
    wanted = os.environ.get(BACKEND_VARIABLE, "")
    if wanted == "reference" or sys.byteorder == "big":
        return None
    path = find_library()
    kernels = open_library(path) if path else None
    if kernels is None and not wanted:
        return None
    if kernels is None or not kernels.select(wanted):
        raise SamebitsError(
            f"{BACKEND_VARIABLE}={wanted} asks for portable kernels that this machine cannot run: "
            "unset it, or set it to scalar or reference.",
            slug="portable-backend",
        )
    from samebits.portable.threads import follow_torch

    follow_torch(kernels)
    return kernels
