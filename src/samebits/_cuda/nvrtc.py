"""NVRTC, the compiler of CUDA as a library, which every CUDA build of torch brings; it needs no device.

Its interface: https://docs.nvidia.com/cuda/nvrtc/ ("NVRTC", CUDA 13.0; the functions used are in all since
11.2).
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# A product and a sum are fused only where a source says so.
OPTIONS = ("--fmad=false", "--std=c++17", "--device-int128")


class CompileError(RuntimeError):
    """NVRTC is not there, or it refuses a source: the text says why."""


def compile_kernels(file: str, sources: Mapping[str, str], capability: tuple[int, int], cuda: str) -> bytes:
    """Return the machine code of one file.

    Args:
        file: the name of a source.
        sources: all that it includes, by name.
        capability: of the device, such as (9, 0).
        cuda: the release that torch was built with, such as `13.0`.

    Raises:
        CompileError: NVRTC is not there, or it does not know the device or the source.
    """
    if file not in sources:
        raise CompileError(f"{file} is missing from this installation")
    nvrtc = _open(cuda)
    program = ctypes.c_void_p()
    names, texts = _strings(list(sources)), _strings(list(sources.values()))
    _check(
        nvrtc,
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), sources[file].encode(), file.encode(), len(sources), texts, names
        ),
    )
    try:
        options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}", *OPTIONS]
        if nvrtc.nvrtcCompileProgram(program, len(options), _strings(options)):
            log = _output(nvrtc, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise CompileError(log.rstrip(b"\0").decode(errors="replace").strip())
        return _output(nvrtc, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


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
