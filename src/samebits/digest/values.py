"""The digest of any value: tensors, NumPy arrays, numbers and text, and containers of them."""

from __future__ import annotations

import struct
import sys
from collections import deque
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import torch

from samebits._text.printable import with_article
from samebits.digest import _definition as d
from samebits.digest._backends import cpu_backend
from samebits.digest.tensors import composite, digest_many
from samebits.errors import SamebitsError


def is_array(obj: Any) -> bool:
    """Return True for NumPy arrays and scalars, without importing NumPy: torch does without it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, (numpy.ndarray, numpy.generic))


@dataclass(frozen=True, order=True)
class Digest:
    """128 bits that tell the exact contents of a value; equal values have equal digests.

    Args:
        value: the 16 bytes.
    """

    value: bytes

    def __str__(self) -> str:
        return self.value.hex()


# Types of values that their text describes entirely.
_NAMED = (torch.dtype, torch.device, torch.layout, torch.memory_format)

# Folds a part of a tree, given the digests of all tensors by position.
_Fold = Callable[[bytes], bytes]


def digest(obj: Any) -> Digest:
    """Return the digest of a tensor, state dict, module, optimizer, or nested containers of such values.

    The order of the keys of a dict does not count; list and tuple are alike, and so are all mappings. A
    NumPy array has the digest of the tensor of the same dtype, shape and contents. Something that has a
    `state_dict` has the digest of that.

    Args:
        obj: tensors, NumPy arrays and scalars, numbers, strings, bytes, None, dtypes, devices; mappings,
            sequences and sets of these.

    Raises:
        SamebitsError: for a value that has no defined contents, and for containers that contain themselves.
    """
    tensors: list[torch.Tensor] = []
    fold = _Tree(tensors).read(obj, "value")
    return Digest(fold(digest_many(tensors)))


class _Tree:
    """Reads a value, collecting its tensors.

    Args:
        tensors: receives the tensors, in the order in which the folds will ask for them.
    """

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self._tensors = tensors
        self._open: set[int] = set()

    def read(self, obj: Any, where: str) -> _Fold:
        """Return a function that will give the digest of a value; `where` is its path, for messages."""
        if isinstance(obj, torch.Tensor):
            return self._tensor(obj)
        leaf = _leaf(obj, where)
        return self._container(obj, where) if leaf is None else lambda _: leaf

    def _tensor(self, tensor: torch.Tensor) -> _Fold:
        start = 16 * len(self._tensors)
        self._tensors.append(tensor)
        return lambda digests: digests[start : start + 16]

    def _container(self, obj: Any, where: str) -> _Fold:
        if id(obj) in self._open:
            raise SamebitsError(
                f"{where} contains itself: a value of finite depth was expected. Digest its parts.",
                slug="digest-recursion",
            )
        self._open.add(id(obj))
        try:
            return self._open_container(obj, where)
        finally:
            self._open.remove(id(obj))

    def _open_container(self, obj: Any, where: str) -> _Fold:
        if isinstance(obj, Mapping):
            return self._unordered(
                "mapping", [(key, f"key {key!r} of {where}", obj[key]) for key in obj], where
            )
        if isinstance(obj, (list, tuple, deque)):
            items = [self.read(item, f"{where}[{i}]") for i, item in enumerate(obj)]
            return lambda digests: composite("sequence", b"".join(item(digests) for item in items))
        if isinstance(obj, AbstractSet):
            return self._unordered("set", [(item, f"an element of {where}", None) for item in obj], where)
        if callable(getattr(obj, "state_dict", None)):
            return self.read(obj.state_dict(), f"{where}.state_dict()")
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")
        raise SamebitsError(
            f"{where} is {with_article(kind)}, whose contents are not defined. "
            "Expected: tensors, arrays, numbers, text, bytes, None, containers of them; digest its parts.",
            slug="digest-type",
        )

    def _unordered(self, tag: str, entries: list[tuple[Any, str, Any]], where: str) -> _Fold:
        pairs = [
            (self.read(key, name), self.read(value, f"{where}[{key!r}]")) for key, name, value in entries
        ]
        return lambda digests: composite(
            tag, b"".join(sorted(key(digests) + value(digests) for key, value in pairs))
        )


def _leaf(obj: Any, where: str) -> bytes | None:
    """Return the digest of a value that is not a container; None for anything else."""
    if isinstance(obj, str):
        return composite("str", obj.encode("utf-8", "surrogatepass"))
    if isinstance(obj, (bytes, bytearray)):
        return composite("bytes", bytes(obj))
    if is_array(obj):
        return _array(obj, where)
    if isinstance(obj, _NAMED):
        return composite(f"{type(obj).__name__} {obj}", b"")
    return _number(obj)


def _number(obj: Any) -> bytes | None:
    if obj is None:
        return composite("none", b"")
    if isinstance(obj, bool):
        return composite("bool", bytes([obj]))
    if isinstance(obj, int):
        return composite("int", hex(obj).encode())
    if isinstance(obj, float):
        return composite("float", struct.pack("<d", obj))
    if isinstance(obj, complex):
        return composite("complex", struct.pack("<dd", obj.real, obj.imag))
    return None


def _array(array: Any, where: str) -> bytes:
    """Return the digest of a NumPy array or scalar, of any strides and byte order."""
    dtype = str(array.dtype.name)
    if dtype not in d.DTYPES:
        raise SamebitsError(
            f"{where} is a NumPy array of dtype {array.dtype}; a dtype that torch has too was expected. "
            "Convert it, or digest its fields.",
            slug="digest-type",
        )
    contents = sys.modules["numpy"].asarray(array)
    if not contents.dtype.isnative:
        contents = contents.astype(contents.dtype.newbyteorder("="))
    if any(stride % d.DTYPES[dtype][1] for stride in contents.strides):  # a field of a structured array
        contents = contents.copy()
    return cpu_backend().digest_array(contents, dtype)
