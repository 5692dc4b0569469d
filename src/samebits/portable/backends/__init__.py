"""The backends that compute the kernels, chosen by device and by what could be loaded.

All backends give the same bits. A backend for another device is one more class with the interface of
interface.py, and one more line in `backend_of`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from samebits.portable._refusals import refuse_device
from samebits.portable.backends.library import load

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.backends.interface import Backend


def backend_of(tensor: Tensor) -> Backend:
    """Return the backend for the memory that a tensor lies in.

    Dispatch refuses tensors of other devices before a kernel is called, naming the op; the error here stands
    behind that.

    Raises:
        SamebitsError: if there is none for its device.
    """
    if tensor.is_cpu:
        return cpu_backend()
    from samebits.portable._devices import device_types  # imports torch, which commands need not

    if tensor.is_cuda and tensor.device.type in device_types():
        return cuda_backend(tensor.get_device())
    raise refuse_device(tensor.device)


@functools.cache
def cuda_backend(index: int) -> Backend:
    """Return what computes on a GPU of NVIDIA.

    Args:
        index: of the device.

    Raises:
        SamebitsError: as `library.load`.
    """
    from samebits.portable.backends.cuda import CudaBackend
    from samebits.portable.backends.cuda_kernels import CudaKernels

    return CudaBackend(index, CudaKernels(index), cpu_backend())


@functools.cache
def cpu_backend() -> Backend:
    """Return the C kernels, or the reference where they cannot be loaded.

    Raises:
        SamebitsError: as `library.load`.
    """
    kernels = load()
    if kernels is None:
        from samebits.portable.backends.reference import ReferenceBackend

        return ReferenceBackend()
    from samebits.portable.backends.native import NativeBackend

    return NativeBackend(kernels)
