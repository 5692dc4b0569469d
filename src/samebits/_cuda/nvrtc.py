"""NVRTC, the compiler of CUDA as a library, which every CUDA build of torch brings; it needs no device.

Its interface: https://docs.nvidia.com/cuda/nvrtc/ ("NVRTC", CUDA 13.0; the functions used are in all since
11.2).
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import locale
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A product and a sum are fused only where a source says so.
MAIN = "unit.cu"
"""The name of the text that a program begins with."""
OPTIONS = ("--fmad=false", "--std=c++17", "--device-int128")


class CompileError(RuntimeError):
    """NVRTC is not there, or it refuses a source: the text says why."""


class Program(NamedTuple):
    """What a compiler is given.

    Args:
        file: whose program it is; it is missing from the sources where an installation lacks it.
        sources: each text by its name; `MAIN` includes the others.
    """

    file: str
    sources: dict[str, str]

    @property
    def key(self) -> str:
        """Return a name of these texts and the options they are compiled with: others have another one."""
        of_all = repr([sorted(self.sources.items()), OPTIONS])
        return hashlib.sha256(of_all.encode()).hexdigest()


class Target(NamedTuple):
    """What a program is compiled to.

    Args:
        architecture: as the compiler's option names it.
        size: the function of NVRTC that gives how many bytes there are.
        copy: the one that gives them.
    """

    architecture: str
    size: str
    copy: str


def machine_code(capability: tuple[int, int]) -> Target:
    """Return the target for devices of a capability, such as (9, 0)."""
    return Target(f"sm_{capability[0]}{capability[1]}", "nvrtcGetCUBINSize", "nvrtcGetCUBIN")


def assembler(capability: tuple[int, int]) -> Target:
    """Return the target that drivers take, for devices of that capability and of higher ones."""
    return Target(f"compute_{capability[0]}{capability[1]}", "nvrtcGetPTXSize", "nvrtcGetPTX")


def compile_program(program: Program, target: Target, cuda: str) -> bytes:
    """Return what a program compiles to.

    Args:
        program: the texts.
        target: what is wanted.
        cuda: the release that torch was built with, such as `13.0`.

    Raises:
        CompileError: NVRTC is not there, or it does not know the device or the source.
    """
    if program.file not in program.sources:
        raise CompileError(f"{program.file} is missing from this installation")
    nvrtc = _open(cuda)
    handle = _create(nvrtc, program)
    try:
        options = [f"--gpu-architecture={target.architecture}", *OPTIONS]
        with _same_locale():
            failed = nvrtc.nvrtcCompileProgram(handle, len(options), _strings(options))
        if failed:
            log = _output(nvrtc, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, handle)
            raise CompileError(log.rstrip(b"\0").decode(errors="replace").strip())
        return _output(nvrtc, getattr(nvrtc, target.size), getattr(nvrtc, target.copy), handle)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(handle))


@contextlib.contextmanager
def _same_locale() -> Iterator[None]:
    """Put the locale back: NVRTC 12.1 leaves "C" as that of its thread and as LC_NUMERIC of its process.

    A script that reads a file with an accent would fail after it.
    """
    with contextlib.ExitStack() as afterwards:
        afterwards.callback(locale.setlocale, locale.LC_ALL, locale.setlocale(locale.LC_ALL))
        if sys.platform != "win32":
            # https://pubs.opengroup.org/onlinepubs/9799919799/functions/uselocale.html
            uselocale = ctypes.CDLL(None).uselocale
            uselocale.argtypes, uselocale.restype = [ctypes.c_void_p], ctypes.c_void_p
            afterwards.callback(uselocale, uselocale(None))
        yield


def _create(nvrtc: ctypes.CDLL, program: Program) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    names, texts = _strings(list(program.sources)), _strings(list(program.sources.values()))
    main = program.sources[MAIN].encode()
    status = nvrtc.nvrtcCreateProgram(
        ctypes.byref(handle), main, MAIN.encode(), len(program.sources), texts, names
    )
    _check(nvrtc, status)
    return handle


def _open(cuda: str) -> ctypes.CDLL:
    for name in _candidates(cuda.partition(".")[0]):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise CompileError(f"there is no NVRTC for CUDA {cuda}")


def _candidates(major: str) -> Iterator[str]:
    """Yield where the library may be: loaded already or in the system, and in NVIDIA's packages."""
    file = f"nvrtc64_{major}0_0.dll" if sys.platform == "win32" else f"libnvrtc.so.{major}"
    yield file
    for entry in map(Path, sys.path):
        for folder in (
            f"nvidia/cu{major}/lib",
            "nvidia/cuda_nvrtc/lib",
            f"nvidia/cu{major}/bin",
            "torch/lib",
        ):
            path = entry / folder / file
            if path.exists():
                yield str(path)


def _strings(texts: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def _output(
    nvrtc: ctypes.CDLL, size_of: Callable[..., int], copy: Callable[..., int], program: ctypes.c_void_p
) -> bytes:
    size = ctypes.c_size_t()
    _check(nvrtc, size_of(program, ctypes.byref(size)))
    data = ctypes.create_string_buffer(size.value)
    _check(nvrtc, copy(program, data))
    return data.raw


def _check(nvrtc: ctypes.CDLL, status: int) -> None:
    if status:
        describe = nvrtc.nvrtcGetErrorString
        describe.restype = ctypes.c_char_p
        raise CompileError(f"NVRTC: {describe(status).decode()}")
