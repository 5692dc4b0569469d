"""What is wrong with a GPU, its driver or a program on it, as the words of an error tell.

The words are those of CUDA (`cudaGetErrorString` of libcudart 13.2, asked for each code up to 1000; the
driver has the same), of cuBLAS and cuDNN (their statuses), and of torch (c10/cuda/CUDACachingAllocator.cpp
and CUDAFunctions.cpp, torch/csrc/cuda/Module.cpp and torch/cuda/__init__.py, 2.15.0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from samebits._text.str_enum import StrEnum


class Fault(StrEnum):
    """What is wrong."""

    NO_DEVICE = "no-device"
    """There is no GPU of NVIDIA here, or no driver for it."""
    OLD_DRIVER = "old-driver"
    """The driver is older than torch's release of CUDA needs."""
    NO_CODE = "no-code"
    """torch has no machine code for the GPU."""
    NO_MEMORY = "no-memory"
    """The GPU's memory is in use."""
    BUSY = "busy"
    """Another process has the GPU for itself, or it takes no work."""
    BROKEN_PROGRAM = "broken-program"
    """A kernel did what it must not: every later call of the process fails."""
    HARDWARE = "hardware"
    """The GPU, its memory or a link to it failed."""


@dataclass(frozen=True)
class Shortage:
    """Memory that was asked for in vain, as torch writes sizes, such as `20.00 MiB`.

    Args:
        asked: how much more was asked for.
        device: the number of the GPU.
        capacity: how much it has.
        free: how much was free.
    """

    asked: str
    device: int
    capacity: str
    free: str


# After `CUDA error:`, or the name of a call of the driver.
_ERRORS = {
    "no CUDA-capable device is detected": Fault.NO_DEVICE,
    "CUDA driver is a stub library": Fault.NO_DEVICE,
    "CUDA driver version is insufficient for CUDA runtime version": Fault.OLD_DRIVER,
    "API call is not supported in the installed CUDA driver": Fault.OLD_DRIVER,
    "the provided PTX was compiled with an unsupported toolchain": Fault.OLD_DRIVER,
    "system has unsupported display driver / cuda driver combination": Fault.OLD_DRIVER,
    "forward compatibility was attempted on non supported HW": Fault.OLD_DRIVER,
    "no kernel image is available for execution on the device": Fault.NO_CODE,
    "device kernel image is invalid": Fault.NO_CODE,
    "out of memory": Fault.NO_MEMORY,
    "CUDA-capable device(s) is/are busy or unavailable": Fault.BUSY,
    "all CUDA-capable devices are busy or unavailable": Fault.BUSY,  # before CUDA 12
    "exclusive-thread device already in use by a different thread": Fault.BUSY,
    "system not yet initialized": Fault.BUSY,
    "an illegal memory access was encountered": Fault.BROKEN_PROGRAM,
    "device-side assert triggered": Fault.BROKEN_PROGRAM,
    "hardware stack error": Fault.BROKEN_PROGRAM,
    "an illegal instruction was encountered": Fault.BROKEN_PROGRAM,
    "misaligned address": Fault.BROKEN_PROGRAM,
    "operation not supported on global/shared address space": Fault.BROKEN_PROGRAM,
    "invalid program counter": Fault.BROKEN_PROGRAM,
    "unspecified launch failure": Fault.BROKEN_PROGRAM,
    "the launch timed out and was terminated": Fault.BROKEN_PROGRAM,
    "uncorrectable ECC error encountered": Fault.HARDWARE,
    "uncorrectable NVLink error detected during the execution": Fault.HARDWARE,
    "Invalid access of peer GPU memory over nvlink or a hardware error": Fault.HARDWARE,
}
# Anywhere in a message; CUBLAS and CUDNN in capitals are statuses.
_WORDS = {
    "Found no NVIDIA driver on your system": Fault.NO_DEVICE,
    "No CUDA GPUs are available": Fault.NO_DEVICE,
    "CUDA driver initialization failed": Fault.NO_DEVICE,
    "NVIDIA driver on your system is too old": Fault.OLD_DRIVER,
    "CUDA out of memory": Fault.NO_MEMORY,
    "CUBLAS_STATUS_ALLOC_FAILED": Fault.NO_MEMORY,
    "CUDNN_STATUS_ALLOC_FAILED": Fault.NO_MEMORY,
    "CUBLAS_STATUS_ARCH_MISMATCH": Fault.NO_CODE,
    "CUDNN_STATUS_ARCH_MISMATCH": Fault.NO_CODE,
}
_ERROR = re.compile(r"(?:CUDA (?:driver )?error|\bcu[A-Z]\w*(?:\(\w*\))?): ([^\n]*)")
_SHORTAGE = re.compile(
    r"Tried to allocate (\d[\w.]* \w+)\. GPU (\d+) has a total capacity of (\d[\w.]* \w+)"
    r" of which (\d[\w.]* \w+) is free"
)


def fault_of(failure: str) -> Fault | None:
    """Return what an error tells; None if it tells of no GPU, or nothing that is known here.

    Args:
        failure: its words, or only their first line.
    """
    for words, fault in _WORDS.items():
        if words in failure:
            return fault
    found = _ERROR.search(failure)
    said = "" if found is None else found[1]
    return next((fault for words, fault in _ERRORS.items() if said.startswith(words)), None)


def shortage_of(failure: str) -> Shortage | None:
    """Return the memory that was asked for in vain; None where an error does not tell.

    Args:
        failure: its words, or only their first line.
    """
    found = _SHORTAGE.search(failure)
    return None if found is None else Shortage(found[1], int(found[2]), found[3], found[4])
