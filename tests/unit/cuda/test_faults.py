"""Errors of a GPU are told apart by the words of CUDA and torch, and shown in one line."""

import pytest

from samebits._cuda.faults import Fault, Shortage, fault_of, shortage_of
from samebits.report.device_faults import _ADVICE, failure_words

MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of "
    "79.15 GiB of which 3.62 MiB is free. Process 4242 has 79.14 GiB memory in use. Of the allocated memory "
    "16.50 KiB is allocated by PyTorch, and 1.98 MiB is reserved by PyTorch but unallocated."
)
ASYNCHRONOUS = "\nCUDA kernel errors might be asynchronously reported at some other API call"


@pytest.mark.parametrize(
    ("failure", "fault"),
    [
        ("RuntimeError: Found no NVIDIA driver on your system. Please check that", Fault.NO_DEVICE),
        ("RuntimeError: No CUDA GPUs are available", Fault.NO_DEVICE),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12080)", Fault.OLD_DRIVER),
        (
            "CUDA error: no kernel image is available for execution on the device",
            Fault.NO_CODE,
        ),
        ("DriverError: cuModuleLoadData: device kernel image is invalid", Fault.NO_CODE),
        ("DriverError: cuModuleGetFunction(digest_finish): out of memory", Fault.NO_MEMORY),
        (MEMORY, Fault.NO_MEMORY),
        (
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            Fault.NO_MEMORY,
        ),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", Fault.BUSY),
        (
            f"CUDA error: device-side assert triggered{ASYNCHRONOUS}",
            Fault.BROKEN_PROGRAM,
        ),
        ("RuntimeError: CUDA driver error: an illegal memory access was encountered", Fault.BROKEN_PROGRAM),
        ("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", Fault.HARDWARE),
        ("ValueError: out of memory", None),
        ("MemoryError: misaligned address", None),
        ("KeyError: 'CUDA'", None),
        ("", None),
    ],
)
def test_errors_are_told_apart(failure, fault):
    assert fault_of(failure) == fault
    assert (failure_words(failure) == failure) == (fault is None)


def test_memory_that_was_asked_for():
    """As much of the message as one line can hold."""
    assert shortage_of(MEMORY) == Shortage("20.00 MiB", 1, "79.15 GiB", "3.62 MiB")
    begun = "torch.OutOfMemoryError: GPU 1 has 3.62 MiB of 79.15 GiB free, and 20.00 MiB more were asked for"
    assert failure_words(MEMORY).startswith(begun)


def test_an_error_without_sizes_is_shown_up_to_its_first_sentence():
    shown = failure_words(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12080). Please"
    )
    assert shown.startswith(
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12080); update "
    )


def test_there_is_advice_for_each():
    assert set(_ADVICE) == set(Fault)
