"""Tensors and NumPy arrays in a checkpoint: their bytes, and the facts stored beside them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from samebits._text.printable import with_article
from samebits.checkpoint._stateful import describe, unsaveable

if TYPE_CHECKING:
    from collections.abc import Sequence

# The dtypes that every reader of the safetensors format knows. Others are stored as bytes, and the tree names
# their dtype.
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
        tensor: strided, on any device and with any strides; its logical contents are stored.
        shape: as stored: that of the tensor, or the number of bytes for a dtype that the format lacks.
        dtype: as stored, by its name in the format.
    """

    name: str
    tensor: torch.Tensor
    shape: tuple[int, ...]
    dtype: str

    @property
    def n_bytes(self) -> int:
        """The length of its contents."""
        return self.tensor.numel() * self.tensor.element_size()


def entry_of(name: str, tensor: torch.Tensor) -> Entry:
    """Make the entry that stores a strided tensor of a dtype in `NAMES` or `OTHERS`."""
    stored = _stored_name(tensor.dtype)
    if stored is not None:
        return Entry(name, tensor, tuple(tensor.shape), stored)
    return Entry(name, tensor, (tensor.numel() * tensor.element_size(),), BYTES)


@functools.cache
def _stored_name(dtype: torch.dtype) -> str | None:
    return NAMES.get(dtype_name(dtype))


@functools.cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype, such as `float32`."""
    return str(dtype).removeprefix("torch.")


def dtype_named(name: Any) -> torch.dtype:
    """Return the dtype of that name.

    Raises:
        ValueError: this torch has none.
    """
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch {torch.__version__} has no dtype {name!r}")  # noqa: TRY004 - it is data
    return dtype


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the logical contents, uint8[n_bytes] on the CPU; a contiguous CPU tensor shares its memory."""
    with torch.no_grad():
        plain = tensor.detach().to("cpu").resolve_conj().resolve_neg()
        return plain.contiguous().reshape(-1).view(torch.uint8)


def memory_of(data: torch.Tensor) -> memoryview:
    """Return the memory of uint8[n] on the CPU, writable."""
    memory: Any = data.numpy()
    return memoryview(memory)


def tensor_of(data: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the tensor with those bytes, sharing their memory.

    Args:
        data: uint8[n_bytes].
        dtype: the dtype of the tensor.
        shape: its shape.

    Raises:
        ValueError: dtype and shape do not fit the number of bytes.
    """
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize != data.numel():
        raise ValueError(f"{data.numel()} bytes are no {dtype_name(dtype)} of shape {list(shape)}")
    return data.view(dtype).reshape(shape)


# Kinds of NumPy dtypes with plain bytes as contents: bool, integers, floats, complex, times, text.
_KINDS = "biufcMmSU"


def array_node(array: Any, where: str) -> tuple[dict[str, Any], torch.Tensor]:
    """Return the facts about an array, and its contents as a tensor.

    Raises:
        SamebitsError: objects, records, or an array class other than `numpy.ndarray`; `checkpoint-entry`.
    """
    if type(array) is not np.ndarray:
        name = f"{type(array).__module__}.{type(array).__qualname__}"
        raise unsaveable(where, f"it is {with_article(name)}; save `numpy.asarray(…)` of it")
    _check_kind(array.dtype, where)
    in_columns = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    facts = {"dtype": array.dtype.str, "shape": list(array.shape)}
    if in_columns:
        facts["order"] = "F"
    return facts, _as_tensor(np.ascontiguousarray(array.T if in_columns else array))


def _as_tensor(array: Any) -> torch.Tensor:
    """Return a tensor of the same shape and contents; uint8[n_bytes] for a dtype that torch lacks."""
    if not array.flags.writeable:
        array = array.copy()  # torch warns of read-only memory
    if array.dtype.kind not in "biuf" or not array.dtype.isnative or array.dtype.itemsize > 8:
        array = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    return torch.from_numpy(array)


def scalar_node(value: Any, where: str) -> dict[str, Any]:
    """Return the JSON of a NumPy scalar."""
    _check_kind(value.dtype, where)
    return {"type": "scalar", "dtype": value.dtype.str, "hex": value.tobytes().hex()}


def _check_kind(dtype: Any, where: str) -> None:
    if dtype.kind not in _KINDS:
        raise unsaveable(where, f"its NumPy dtype is {dtype}; save its fields, or a list")


def array_from(data: torch.Tensor, dtype: Any, shape: list[int], order: str) -> Any:
    """Return the array that `array_node` described.

    Args:
        data: its contents as uint8[n_bytes].
        dtype: text such as `<f8`.
        shape: the shape of the array.
        order: `F` if the first dimension is the innermost, else `C`.

    Raises:
        ValueError: the description is invalid.
    """
    kind = _numpy_dtype(dtype)
    laid_out = tuple(reversed(shape)) if order == "F" else tuple(shape)
    if data.numel() != kind.itemsize * int(np.prod(laid_out, dtype=object)):
        raise ValueError(f"{data.numel()} bytes are no {kind} of shape {shape}")
    if kind.itemsize == 0:
        return np.empty(tuple(shape), kind)
    array = data.numpy().view(kind).reshape(laid_out)
    return array.T if order == "F" else array


def scalar_from(dtype: Any, text: Any) -> Any:
    """Return the NumPy scalar that `scalar_node` described.

    Raises:
        ValueError: the description is invalid.
    """
    kind, data = _numpy_dtype(dtype), bytes.fromhex(text)
    if len(data) != kind.itemsize:
        raise ValueError(f"{len(data)} bytes are no {kind}")
    return np.frombuffer(data, kind)[0] if data else np.zeros((), kind)[()]


def _numpy_dtype(text: Any) -> Any:
    """Return the NumPy dtype of a text.

    Raises:
        ValueError: it is no dtype whose contents are plain bytes.
    """
    try:
        dtype = np.dtype(text) if isinstance(text, str) else None
    except (TypeError, SyntaxError) as error:
        raise ValueError(f"NumPy has no dtype {text!r}") from error
    if dtype is None or dtype.kind not in _KINDS:
        raise ValueError(f"{text!r} where a NumPy dtype of plain contents was expected")
    return dtype


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_BY_ROW = {torch.sparse_csr: "sparse_csr", torch.sparse_bsr: "sparse_bsr"}
_BY_COLUMN = {torch.sparse_csc: "sparse_csc", torch.sparse_bsc: "sparse_bsc"}
COMPRESSED = {name: layout for layout, name in (_BY_ROW | _BY_COLUMN).items()}


def check_tensor(tensor: torch.Tensor, where: str) -> None:
    """Refuse a strided tensor whose contents are not plain numbers in memory.

    Raises:
        SamebitsError: `checkpoint-entry`.
    """
    reason = ""
    if type(tensor) not in _PLAIN:
        reason = f"{describe(tensor)}; save the plain tensors that it holds"
    elif tensor.is_meta:
        reason = "it is on the device `meta` and has no contents; give it some first"
    elif tensor.is_quantized:
        reason = "it is quantized; save `int_repr()`, the scale and the zero point"
    elif tensor.is_nested:
        reason = "it is a nested tensor; save the list that `unbind()` returns"
    elif dtype_name(tensor.dtype) not in NAMES and dtype_name(tensor.dtype) not in OTHERS:
        reason = f"its dtype is {tensor.dtype}; view it as another one"
    elif tensor.numel() and not tensor.untyped_storage().nbytes():
        reason = "its storage was freed; gather it first"
    if reason:
        raise unsaveable(where, reason)


def sparse_parts(tensor: torch.Tensor, where: str) -> tuple[str, list[tuple[str, torch.Tensor]]]:
    """Return the layout of a sparse tensor and the dense tensors that make it up.

    Raises:
        SamebitsError: the tensor is not coalesced, or of an opaque layout; `checkpoint-entry`.
    """
    if type(tensor) not in _PLAIN or tensor.is_meta:
        raise unsaveable(where, describe(tensor))
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        if not tensor.is_coalesced():
            raise unsaveable(
                where, "it is sparse and not coalesced; save the tensor that `coalesce()` returns"
            )
        return "sparse_coo", [("indices", tensor.indices()), ("values", tensor.values())]
    if tensor.layout in _BY_ROW:
        parts = [("crow_indices", tensor.crow_indices()), ("col_indices", tensor.col_indices())]
        return _BY_ROW[tensor.layout], [*parts, ("values", tensor.values())]
    if tensor.layout in _BY_COLUMN:
        parts = [("ccol_indices", tensor.ccol_indices()), ("row_indices", tensor.row_indices())]
        return _BY_COLUMN[tensor.layout], [*parts, ("values", tensor.values())]
    raise unsaveable(where, f"its layout is {tensor.layout}; save the tensor that `to_dense()` returns")


def sparse_tensor(layout: str, shape: Sequence[int], parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the sparse tensor that `sparse_parts` took apart.

    Raises:
        ValueError: the parts make no sparse tensor.
    """
    try:
        first, second = parts[0], parts[1]
        device = first.device
        if layout == "sparse_coo":
            return torch.sparse_coo_tensor(
                first, second, tuple(shape), device=device, is_coalesced=True, check_invariants=True
            )
        return torch.sparse_compressed_tensor(
            first,
            second,
            parts[2],
            tuple(shape),
            layout=COMPRESSED[layout],
            device=device,
            check_invariants=True,
        )
    except (RuntimeError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"a sparse tensor that torch refuses: {error}") from error


def tensor_facts(tensor: torch.Tensor) -> dict[str, Any]:
    """Return the facts about a tensor beside its contents and name, without defaults."""
    facts: dict[str, Any] = {}
    name = dtype_name(tensor.dtype)
    if name not in NAMES:
        facts |= {"dtype": name, "shape": list(tensor.shape)}
    if tensor.device.type != "cpu":
        facts["device"] = str(tensor.device)
    if not tensor.is_contiguous() and _are_dense(tensor.stride(), tensor.shape):
        facts["strides"] = list(tensor.stride())
    return facts


def _are_dense(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Tell whether the elements are adjacent in some order of the dimensions, without overlap."""
    expected = 1
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def with_strides(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Lay the same values out in memory by those strides.

    Raises:
        ValueError: the strides do not fit the shape.
    """
    if len(strides) != tensor.dim() or not _are_dense(strides, tensor.shape):
        raise ValueError(f"strides {list(strides)} do not fit the shape {list(tensor.shape)}")
    laid_out = torch.empty_strided(
        tuple(tensor.shape), tuple(strides), dtype=tensor.dtype, device=tensor.device
    )
    return laid_out.copy_(tensor)
