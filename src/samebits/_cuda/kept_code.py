"""Machine code that NVRTC made before, kept in the user's folder for caches: to make it takes seconds."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from samebits._cuda.nvrtc import compile_program, machine_code
from samebits._text.caches import cache_folder
from samebits._text.files import open_to_read, write_whole

if TYPE_CHECKING:
    from samebits._cuda.nvrtc import Program

_LARGEST = 64 << 20  # bytes of a file
_CHECK = hashlib.sha256().digest_size


def code_of(program: Program, capability: tuple[int, int], cuda: str) -> bytes:
    """Return the machine code of a program, compiled unless it is kept.

    A file that is missing, damaged or cannot be written only costs time.

    Raises:
        CompileError: as `compile_program`.
    """
    of_all = repr([program.key, capability, cuda])
    name = hashlib.sha256(of_all.encode()).hexdigest()
    path = os.path.join(cache_folder(), "kernels", f"{name}.cubin")
    code = _read(path)
    if code is None:
        code = compile_program(program, machine_code(capability), cuda)
        _write(path, code)
    return code


def _read(path: str) -> bytes | None:
    try:
        with open_to_read(path) as file:
            held = file.read(_LARGEST)
    except OSError:
        return None
    check, code = held[:_CHECK], held[_CHECK:]
    return code if check == hashlib.sha256(code).digest() else None


def _write(path: str, code: bytes) -> None:
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, hashlib.sha256(code).digest() + code)
