"""The build ID of a shared library: the name that its linker made from its contents.

It is a note of type NT_GNU_BUILD_ID (man 1 ld, `--build-id`), found through the program header (man 5 elf).
So a few hundred bytes tell libraries of hundreds of megabytes apart.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_HEADER = struct.Struct("<4sBB10x16xQ14xHH8x")  # magic, class, byte order, e_phoff, e_phentsize, e_phnum
_SEGMENT = struct.Struct("<I4xQ16xQ8xQ")  # p_type, p_offset, p_filesz, p_align
_NOTE = struct.Struct("<III")  # sizes of name and contents, type
_64_BIT, _LITTLE_ENDIAN = 2, 1
_PT_NOTE = 4
_OF_BUILD_ID = (b"GNU\0", 3)
_MOST_SEGMENTS = 256
_LARGEST_NOTES = 1 << 16
_LONGEST_ID = 64  # bytes; linkers make 8 to 20


def read_build_id(file: BinaryIO) -> str:
    """Return the build ID of a library in hexadecimal digits; empty if it has none or is no 64-bit ELF file.

    Args:
        file: the library, open at its beginning.

    Raises:
        OSError: it cannot be read.
    """
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return ""
    magic, size, order, start, length, count = _HEADER.unpack(header)
    if (magic, size, order, length) != (b"\x7fELF", _64_BIT, _LITTLE_ENDIAN, _SEGMENT.size):
        return ""
    table = _read_at(file, start, min(count, _MOST_SEGMENTS) * length)
    for kind, offset, filled, alignment in _SEGMENT.iter_unpack(table[: len(table) // length * length]):
        if kind == _PT_NOTE:
            data = _read_at(file, offset, min(filled, _LARGEST_NOTES))
            for name, number, contents in _notes(data, 8 if alignment == 8 else 4):
                if (name, number) == _OF_BUILD_ID and len(contents) <= _LONGEST_ID:
                    return contents.hex()
    return ""


def _read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    if offset >= 1 << 63:
        return b""
    file.seek(offset)
    return file.read(size)


def _notes(data: bytes, alignment: int) -> Iterator[tuple[bytes, int, bytes]]:
    """Return name, type and contents of each note of a segment."""
    at = 0
    while at + _NOTE.size <= len(data):
        name_size, size, number = _NOTE.unpack_from(data, at)
        name_at = at + _NOTE.size
        contents_at = _aligned(name_at + name_size, alignment)
        yield data[name_at : name_at + name_size], number, data[contents_at : contents_at + size]
        at = _aligned(contents_at + size, alignment)


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
