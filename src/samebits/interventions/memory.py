"""The intervention `fill`: fresh memory of NumPy and of devices holds zeros.

The C library fills all other memory of the CPU. glibc fills the memory that NumPy gets from it too, but
NumPy keeps freed blocks of less than 1 KiB and hands them out again as they are
(numpy/_core/src/multiarray/alloc.c, `_npy_alloc_cache`). Its arrays all get their memory from one table of
functions, the default handler of NEP 49, whose `malloc` is called with a context that the default functions
do not use. With the context 1 and the C library's `calloc(1, size)` in its place every block is new and zero,
in all threads, whatever code makes the array.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame
from samebits.interventions.intervention import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.interventions.intervention import Replacements

_EMPTY = ("empty", "empty_like", "empty_strided", "empty_permuted")
_NEW_EMPTY = ("new_empty", "new_empty_strided", "resize_", "resize_as_")
_DEFAULT_HANDLER = 306  # its index in NumPy's table of C names (numpy/__multiarray_api.h); new in NumPy 1.22
_CAPSULE = b"mem_handler"


def fix_fill(replacements: Replacements) -> None:
    """Fill fresh memory of NumPy and of devices with zeros; the C library fills all other CPU memory."""
    replacements.imports.on_import("numpy", lambda numpy: _fill_arrays(replacements, numpy))
    replacements.imports.on_torch(lambda torch: _fix_empty(replacements, torch))


def _fill_arrays(replacements: Replacements, numpy: Any) -> None:
    put_back = fill_arrays(numpy)
    if put_back is not None:
        replacements.at_end.append(put_back)


def _fix_empty(replacements: Replacements, torch: Any) -> None:
    def zeroed(function: Any, *args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return made if made.device.type in ("cpu", "meta") else made.zero_()

    for name in _EMPTY:
        replacements.replace(torch, name, zeroed, replacements.asker.is_direct)
    for name in _NEW_EMPTY:
        _fix_method(replacements, torch, name)


def _fix_method(replacements: Replacements, torch: Any, name: str) -> None:
    original = getattr(torch.Tensor, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.numel() if name.startswith("resize") else 0
        made = original(self, *args, **kwargs)
        fresh = made.device.type not in ("cpu", "meta") and replacements.asker.is_direct(calling_frame())
        if fresh and made.is_contiguous():
            made.view(-1)[before:].zero_()
        return made

    replacements.patches.set(torch.Tensor, name, method)


def _fill_obstacle() -> str:
    library = platform.libc_ver()[0]
    return "" if library == "glibc" else f"filling memory needs glibc; found {library or 'another C library'}"


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
        a function that undoes this; None where this NumPy has no such handler.
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


FILL = Intervention(
    "fill",
    "with fresh memory filled with zeros",
    environment=(
        ("MALLOC_PERTURB_", "255"),
        ("GLIBC_TUNABLES", "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"),
    ),
    patch=fix_fill,
    obstacle=_fill_obstacle,
    limits="memory of a device that C++ code takes; what Python's own allocator hands to C code",
)
