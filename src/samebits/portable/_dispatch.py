"""The two ways in which ops come to portable mode, and which of them a process uses."""

from __future__ import annotations

import functools
from typing import Any

from samebits._text.variable_names import PORTABLE_DISPATCH
from samebits._torch.autograd_kernels import modes_of_thread
from samebits._torch.dispatch_key import can_register, is_inside
from samebits.errors import SamebitsError
from samebits.portable._mode import DispatchMode
from samebits.portable._registration import Registration
from samebits.portable.ways import Way, wanted_way


class PortableMode:
    """Portable mode of the thread that enters it. It may be entered again inside itself."""

    def __init__(self) -> None:
        self._way: Any = Registration() if uses_registration() else DispatchMode()

    def __enter__(self) -> None:
        self._way.__enter__()

    def __exit__(self, *error: object) -> None:
        self._way.__exit__(*error)


@functools.cache
def uses_registration() -> bool:
    """Tell whether kernels in torch's dispatcher are used, and not a dispatch mode. Both give the same bits.

    Raises:
        SamebitsError: if `SAMEBITS_PORTABLE_DISPATCH` is neither `registration` nor `mode`, or asks for
            kernels that this torch does not take.
    """
    wanted = wanted_way()
    if wanted is Way.REGISTRATION and not can_register():
        raise SamebitsError(
            f"{PORTABLE_DISPATCH}={wanted} asks for kernels in torch's dispatcher, and this torch takes none "
            "from Python; expected torch 2.9 or newer; unset the variable, or set it to mode",
            slug="portable-dispatch",
        )
    return can_register() and wanted is not Way.MODE


def is_portable() -> bool:
    """Tell whether this thread is in portable mode."""
    return is_inside() or any(isinstance(mode, DispatchMode) for mode in modes_of_thread())
