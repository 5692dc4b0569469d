"""The two ways in which ops come to portable mode, and which of them a process uses."""

from __future__ import annotations

import functools
import os
from typing import Any

from samebits._torch.autograd_kernels import modes_of_thread
from samebits._torch.dispatch_key import can_register, is_inside
from samebits.errors import SamebitsError
from samebits.portable._mode import DispatchMode
from samebits.portable._registration import Registration

DISPATCH_VARIABLE = "SAMEBITS_PORTABLE_DISPATCH"
_WAYS = ("registration", "mode")


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
    wanted = os.environ.get(DISPATCH_VARIABLE)
    if wanted not in {None, "", *_WAYS}:
        raise SamebitsError(
            f"{DISPATCH_VARIABLE} is {wanted!r}, and {' or '.join(_WAYS)} was expected",
            slug="portable-dispatch",
        )
    if wanted == "registration" and not can_register():
        raise SamebitsError(
            f"{DISPATCH_VARIABLE} is `registration`, and this torch takes no kernels from Python: leave the "
            "variable out, or take a newer torch",
            slug="portable-dispatch",
        )
    return can_register() and wanted != "mode"


def is_portable() -> bool:
    """Tell whether this thread is in portable mode."""
    return is_inside() or any(isinstance(mode, DispatchMode) for mode in modes_of_thread())
