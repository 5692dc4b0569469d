"""The arrays of a checkpoint: which there are, and their bytes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

# The names of dtypes in the safetensors format that every reader of it knows. Others are stored as bytes,
# and the tree says what they are.
NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
DTYPES = {stored: name for name, stored in NAMES.items()}
# Stored as bytes.
OTHERS = (
    "complex32",
    "complex64",
    "complex128",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
)
BYTES = "U8"


@dataclass(frozen=True, slots=True)
class Entry:
    """One array of a checkpoint.

    Args:
        name: unique in the file, such as `optimizer.state.0.exp_avg`.
        tensor: strided, of any device and strides; its logical contents are stored.
        shape: as stored: that of the tensor, or the number of bytes for a dtype that the format lacks.
        dtype: as stored, in the words of the format.
    """

    name: str
    tensor: torch.Tensor
    shape: tuple[int, ...]
    dtype: str

    @property
    def n_bytes(self) -> int:
        """Length of its contents."""
        return self.tensor.numel() * self.tensor.element_size()


def entry_of(name: str, tensor: torch.Tensor) -> Entry:
    """The entry that stores a strided tensor of a dtype in `NAMES` or `OTHERS`."""
    stored = _stored_name(tensor.dtype)
    if stored is not None:
        return Entry(name, tensor, tuple(tensor.shape), stored)
    return Entry(name, tensor, (tensor.numel() * tensor.element_size(),), BYTES)


@functools.cache
def _stored_name(dtype: torch.dtype) -> str | None:
    return NAMES.get(dtype_name(dtype))


@functools.cache
def dtype_name(dtype: torch.dtype) -> str:
    """Such as `float32`."""
    return str(dtype).removeprefix("torch.")


def dtype_named(name: Any) -> torch.dtype:
    """The dtype of that name.

    Raises:
        ValueError: this torch has none.
    """
    found = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(found, torch.dtype):
        raise ValueError(f"torch {torch.__version__} has no dtype {name!r}")  # noqa: TRY004 - it is data
    return found


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The logical contents, uint8[n_bytes] in CPU memory; the tensor's own memory where it is contiguous."""
    with torch.no_grad():
        plain = tensor.detach().to("cpu").resolve_conj().resolve_neg()
        return plain.contiguous().reshape(-1).view(torch.uint8)


def memory_of(data: torch.Tensor) -> memoryview:
    """The memory of uint8[n] on the CPU, writable."""
    memory: Any = data.numpy()
    return memoryview(memory)


def tensor_of(data: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor with those bytes, sharing their memory.

    Args:
        data: uint8[n_bytes].
        dtype: what they are.
        shape: must fit.

    Raises:
        ValueError: it does not.
    """
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize != data.numel():
        raise ValueError(f"{data.numel()} bytes are no {dtype_name(dtype)} of shape {list(shape)}")
    return data.view(dtype).reshape(shape)
