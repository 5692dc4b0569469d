"""The two ways in which ops come to portable mode, and which of them a process uses."""

from __future__ import annotations

import functools
import threading
from typing import Any

from samebits._text.variable_names import PORTABLE_DISPATCH
from samebits._torch.autograd_kernels import modes_of_thread
from samebits._torch.dispatch_key import can_register, is_inside
from samebits.errors import SamebitsError
from samebits.portable._mode import DispatchMode
from samebits.portable._registration import Registration
from samebits.portable.ways import Way, wanted_way


class PortableMode:
    """Portable mode of the thread that enters it. It may be entered again inside itself.

    The blocks of a thread may end in any order, as those of two tasks of asyncio do: the thread is in
    portable mode until the last one ends.

    Args:
        again: whether another thread of this process is in portable mode already.
    """

    def __init__(self, *, again: bool = False) -> None:
        self._again = again
        self._way: Any = None  # what this block is to leave; None while another block of the thread does

    def __enter__(self) -> None:
        if not uses_registration():
            self._enter(DispatchMode())
        elif not (_BLOCKS.open and is_inside()):
            self._enter(Registration(again=self._again))
        _BLOCKS.open.append(self)

    def _enter(self, way: Any) -> None:
        way.__enter__()
        self._way = way

    def __exit__(self, *error: object) -> None:
        if self not in _BLOCKS.open:  # it was entered in another thread, which nothing can reach from here
            return
        at = _BLOCKS.open.index(self)
        del _BLOCKS.open[at]
        heir = next((block for block in _BLOCKS.open[at:] if block._way is None), None)
        way, self._way = self._way, None
        if heir is not None and way is not None:
            heir._way = way
        elif way is not None:
            way.__exit__(*error)


class _Blocks(threading.local):
    """The blocks of a thread, by when they began."""

    def __init__(self) -> None:
        self.open: list[PortableMode] = []


_BLOCKS = _Blocks()


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
