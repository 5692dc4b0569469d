"""Compiled kernels on a device: loaded and launched by CUDA's driver, with raw pointers.

The driver's interface is stable over all releases of CUDA and torch:
https://docs.nvidia.com/cuda/cuda-driver-api/ (sections "Module Management", "Execution Control", CUDA 13.0).
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Argument: TypeAlias = "ctypes.c_void_p | ctypes.c_ulonglong | ctypes.Array[ctypes.c_char]"


_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class DriverError(RuntimeError):
    """The driver is not there, or a call of it failed: the text says which."""


class Kernel:
    """A function of loaded code.

    Args:
        driver: its library.
        function: its handle.
    """

    def __init__(self, driver: ctypes.CDLL, function: ctypes.c_void_p) -> None:
        self._driver, self._function = driver, function
        self._allowed = 0  # bytes of dynamic shared memory; some are free, how many the code decides

    def launch(
        self, grid: tuple[int, int, int], block: tuple[int, int], arguments: Sequence[Argument], stream: int
    ) -> None:
        """Queue it; the context of the stream's device must be current in this thread.

        Args:
            grid: how many blocks there are in each dimension.
            block: how many threads one has, and how many bytes of dynamic shared memory.
            arguments: addresses, numbers, and the bytes of structs.
            stream: the handle of a stream.

        Raises:
            DriverError: the driver refused.
        """
        threads, shared = block
        if shared > self._allowed:
            status = self._driver.cuFuncSetAttribute(self._function, _MAX_DYNAMIC_SHARED, shared)
            _check(self._driver, status, "cuFuncSetAttribute")
            self._allowed = shared
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        status = self._driver.cuLaunchKernel(
            self._function, *grid, threads, 1, 1, shared, ctypes.c_void_p(stream), pointers, None
        )
        _check(self._driver, status, "cuLaunchKernel")


class Module:
    """Machine code in the current context, where it stays.

    Args:
        code: of the device of that context.

    Raises:
        DriverError: there is no driver, or it refused.
    """

    def __init__(self, code: bytes) -> None:
        try:
            self._driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        except OSError as error:
            raise DriverError(str(error)) from error
        self._module = ctypes.c_void_p()
        status = self._driver.cuModuleLoadData(ctypes.byref(self._module), code)
        _check(self._driver, status, "cuModuleLoadData")

    def kernel(self, name: str) -> Kernel:
        """Return a function of it.

        Args:
            name: of the function.

        Raises:
            DriverError: there is none of that name.
        """
        return Kernel(self._driver, _function(self._driver, self._module, name))


def _function(driver: ctypes.CDLL, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
    function = ctypes.c_void_p()
    status = driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    _check(driver, status, f"cuModuleGetFunction({name})")
    return function


def _check(driver: ctypes.CDLL, status: int, call: str) -> None:
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        raise DriverError(f"{call}: {(text.value or b'unknown error').decode()}")
