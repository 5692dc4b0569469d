"""What computes the kernels of portable mode; chosen here, by device and by what could be loaded.

All backends give the same bits. A backend for another device is one more class with the interface of
interface.py, and one more line in `backend_of`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from samebits.portable.backends.library import load

if TYPE_CHECKING:
    from torch import Tensor

    from samebits.portable.backends.interface import Backend


def backend_of(tensor: Tensor) -> Backend:
    """The backend for the memory that a tensor lies in.

    Raises:
        NotImplementedError: if there is none for its device.
    """
    if tensor.is_cpu:
        return cpu_backend()
    raise NotImplementedError(f"no portable kernels for {tensor.device}")


@functools.cache
def cpu_backend() -> Backend:
    """The C kernels, or the reference where they cannot be loaded.

    Raises:
        SamebitsError: as `library.load`.
    """
    kernels = load()
    if kernels is None:
        from samebits.portable.backends.reference import ReferenceBackend

        return ReferenceBackend()
    from samebits.portable.backends.native import NativeBackend

    return NativeBackend(kernels)
