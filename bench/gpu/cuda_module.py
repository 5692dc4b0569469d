"""Compiles the sources of native/cuda while a program runs, and launches their kernels with raw pointers.

The compiler is NVRTC, which comes with torch; nvcc is asked where that fails. Contraction is off: a product
and a sum are fused only where a source says so.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.cuda import _utils as cuda_utils

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NATIVE = Path(__file__).resolve().parents[2] / "native"
INCLUDED = (NATIVE / "cuda", NATIVE, NATIVE / "portable")
# NVRTC has no <stdint.h>, <math.h> and <string.h>.
FREESTANDING = NATIVE / "cuda" / "freestanding"
COMPILING = 8
OPTIONS = ("--fmad=false", "--std=c++17")
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NUM_REGS, LOCAL_BYTES = 4, 3  # CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES


@dataclass(frozen=True)
class Source:
    """A file of native/cuda with macros.

    Args:
        file: its name.
        kernel: the name of one of its kernels, which NVRTC wants to know.
        macros: names with values.
    """

    file: str
    kernel: str
    macros: Mapping[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """Return the source with its macros."""
        defined = "".join(f"#define {name} {value}\n" for name, value in self.macros.items())
        return defined + (NATIVE / "cuda" / self.file).read_text(encoding="utf-8")


def capability() -> str:
    """Return the capability of the current device, such as `90`."""
    major, minor = torch.cuda.get_device_capability()
    return f"{major}{minor}"


def compile_source(source: Source, arch: str) -> bytes:
    """Return the code for one architecture, without a device.

    Args:
        source: what to compile.
        arch: a capability, such as `90`.

    Raises:
        RuntimeError: if neither NVRTC nor nvcc compiles it.
    """
    folders = [str(folder) for folder in (FREESTANDING, *INCLUDED)]
    options = [*OPTIONS, "--device-int128"]
    try:
        code, _ = cuda_utils._nvrtc_compile(source.text(), source.kernel, arch, folders, options)
    except (RuntimeError, OSError, AttributeError, TypeError) as error:
        return _compile_with_nvcc(source, arch, str(error))
    return bytes(code)


def _compile_with_nvcc(source: Source, arch: str, reason: str) -> bytes:
    if shutil.which("nvcc") is None:
        raise RuntimeError(reason)
    with tempfile.TemporaryDirectory() as folder:
        text, code = Path(folder, "source.cu"), Path(folder, "code.cubin")
        text.write_text(source.text(), encoding="utf-8")
        paths = [f"-I{included}" for included in INCLUDED]
        command = ["nvcc", "-cubin", f"-arch=sm_{arch}", *OPTIONS, *paths, str(text), "-o", str(code)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"NVRTC: {reason}\nnvcc: {done.stderr}")
        return code.read_bytes()


class Kernel:
    """A function of a loaded module.

    Args:
        function: the driver's handle.
    """

    def __init__(self, function: ctypes.c_void_p) -> None:
        self._function = function
        self._driver = cuda_utils._get_gpu_runtime_library()

    def allow_shared(self, n_bytes: int) -> None:
        """Let launches use that much dynamic shared memory."""
        cuda_utils._check_cuda(self._driver.cuFuncSetAttribute(self._function, MAX_DYNAMIC_SHARED, n_bytes))

    def attribute(self, number: int) -> int:
        """Return an attribute of the function, such as its number of registers."""
        value = ctypes.c_int()
        cuda_utils._check_cuda(self._driver.cuFuncGetAttribute(ctypes.byref(value), number, self._function))
        return value.value

    def launch(
        self, grid: tuple[int, ...], threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        """Launch on the current stream.

        Args:
            grid: blocks in x, y and z; what is missing is 1.
            threads: in a block.
            arguments: tensors, whose address is passed, and values of ctypes.
            shared_bytes: dynamic shared memory.
        """
        values = [
            ctypes.c_void_p(value.data_ptr()) if isinstance(value, torch.Tensor) else value
            for value in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        x, y, z = (*grid, 1, 1, 1)[:3]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        cuda_utils._check_cuda(
            self._driver.cuLaunchKernel(
                self._function, x, y, z, threads, 1, 1, shared_bytes, stream, pointers, None
            )
        )


def load(code: bytes, names: Sequence[str]) -> dict[str, Kernel]:
    """Return kernels of compiled code by name.

    Args:
        code: what `compile_source` returned.
        names: of the kernels, all `extern "C"`.
    """
    torch.cuda.init()
    torch.zeros(1, device="cuda")  # makes the context current
    loaded = cuda_utils._cuda_load_module(code, list(names))
    return {name: Kernel(loaded[name].func) for name in names}


def compile_all(sources: Sequence[Source], arch: str) -> list[bytes | RuntimeError]:
    """Compile side by side.

    Returns:
        for each source its code, or why there is none.
    """

    def attempt(source: Source) -> bytes | RuntimeError:
        try:
            return compile_source(source, arch)
        except RuntimeError as error:
            return error

    with ThreadPoolExecutor(COMPILING) as pool:
        return list(pool.map(attempt, sources))


def build(source: Source, names: Sequence[str]) -> dict[str, Kernel]:
    """Return kernels of a source, compiled for the current device."""
    return load(compile_source(source, capability()), names)
