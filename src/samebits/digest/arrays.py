"""NumPy arrays: the digest of the tensor of the same dtype, shape and contents."""

from __future__ import annotations

import sys
from array import array
from typing import Any

import torch

from samebits.digest import definition as d
from samebits.digest import torch_backend
from samebits.digest.tensors import run_once


def is_array(obj: Any) -> bool:
    """True for NumPy arrays and scalars; NumPy is not imported for that, and torch does without it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, (numpy.ndarray, numpy.generic))


def dtype_of(obj: Any) -> str | None:
    """The name of the torch dtype of an array, None if torch has no such dtype."""
    name = str(obj.dtype.name)
    return name if name in d.DTYPES else None


def digest_array(obj: Any, dtype: str) -> bytes:
    """The digest of a NumPy array or scalar, of strides and byte order as they come.

    Args:
        obj: the array.
        dtype: what `dtype_of` gave.
    """
    code, width = d.DTYPES[dtype]
    contents = sys.modules["numpy"].asarray(obj)
    if not contents.dtype.isnative:
        contents = contents.astype(contents.dtype.newbyteorder("="))
    if any(stride % width for stride in contents.strides):  # a field of a structured array
        contents = contents.copy()
    words = array(
        "Q", (contents.ctypes.data, d.header(dtype) | contents.ndim << d.N_DIMS | d.STRIDED, *contents.shape)
    )
    words.extend(stride // width & d.MASK for stride in contents.strides)
    result = run_once(words, 1)
    if result is not None:
        return result
    flat = contents.copy().reshape(-1)
    kind = torch.int64 if width == 16 else getattr(torch, f"int{8 * width}")  # complex128 is two words
    data = (
        torch.frombuffer(flat, dtype=kind) if flat.size else torch.empty(0, dtype=torch.uint8, device="cpu")
    )
    return d.close(torch_backend.block_sums([data])[0], contents.nbytes, code, contents.shape)
