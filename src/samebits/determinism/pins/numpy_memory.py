"""The part of the pin `fill` inside NumPy: fresh arrays hold zeros.

glibc fills the memory that NumPy gets from it, but NumPy keeps freed blocks of less than 1 KiB and hands
them out again as they are (numpy/_core/src/multiarray/alloc.c, `_npy_alloc_cache`). Its arrays all get their
memory from one table of functions, the default handler of NEP 49, whose `malloc` is called with a context
that the default functions do not use. With the context 1 and the C library's `calloc(1, size)` in its place
every block is new and zero, in all threads, whatever code makes the array.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_DEFAULT_HANDLER = 306  # its place in NumPy's table of C names (numpy/__multiarray_api.h); new in NumPy 1.22
_CAPSULE = b"mem_handler"


class _Handler(ctypes.Structure):
    """`PyDataMem_Handler` of numpy/ndarraytypes.h."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


def fill_arrays(numpy: Any) -> Callable[[], None] | None:
    """Have NumPy give zeros wherever it would give unwritten memory.

    Args:
        numpy: the module.

    Returns:
        what puts the old way back; None where this NumPy has no such handler.
    """
    handler = _default_handler(numpy)
    if handler is None or handler.version != 1:
        return None
    before = handler.ctx, handler.malloc
    handler.ctx = 1
    handler.malloc = ctypes.cast(ctypes.CDLL(None).calloc, ctypes.c_void_p).value

    def put_back() -> None:
        handler.ctx, handler.malloc = before

    return put_back


def _default_handler(numpy: Any) -> _Handler | None:
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get("numpy.core._multiarray_umath")
    capsule = getattr(core, "_ARRAY_API", None)
    if capsule is None or tuple(map(int, numpy.__version__.split(".")[:2])) < (1, 22):
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    names = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    holder = ctypes.cast(names[_DEFAULT_HANDLER], ctypes.POINTER(ctypes.py_object))
    return _Handler.from_address(get(holder.contents.value, _CAPSULE))
