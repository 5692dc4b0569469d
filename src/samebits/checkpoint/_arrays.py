"""Tensors and NumPy arrays in a checkpoint: their bytes, and what is kept beside them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from samebits._text.wording import with_article
from samebits.checkpoint._refusals import describe, unsaveable

if TYPE_CHECKING:
    from collections.abc import Sequence

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


# Kinds of dtypes whose contents are bytes and nothing else: bool, integers, floats, complex, times, text.
_KINDS = "biufcMmSU"


def array_node(array: Any, where: str) -> tuple[dict[str, Any], torch.Tensor]:
    """What an array is beside its contents, and these as a tensor.

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
    """The tensor of the same shape and contents; uint8[n_bytes] for a dtype that torch lacks."""
    if not array.flags.writeable:
        array = array.copy()  # torch warns of memory that must not be written
    if array.dtype.kind not in "biuf" or not array.dtype.isnative or array.dtype.itemsize > 8:
        array = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    return torch.from_numpy(array)


def scalar_node(value: Any, where: str) -> dict[str, Any]:
    """The JSON of a NumPy scalar."""
    _check_kind(value.dtype, where)
    return {"type": "scalar", "dtype": value.dtype.str, "hex": value.tobytes().hex()}


def _check_kind(dtype: Any, where: str) -> None:
    if dtype.kind not in _KINDS:
        raise unsaveable(where, f"its NumPy dtype is {dtype}; save its fields, or a list")


def array_from(data: torch.Tensor, dtype: Any, shape: list[int], order: str) -> Any:
    """The array that `array_node` described.

    Args:
        data: its contents as uint8[n_bytes].
        dtype: text such as `<f8`.
        shape: of the array.
        order: `F` if the first dimension is the innermost, else `C`.

    Raises:
        ValueError: that is no such array.
    """
    kind = numpy_dtype(dtype)
    laid_out = tuple(reversed(shape)) if order == "F" else tuple(shape)
    if data.numel() != kind.itemsize * int(np.prod(laid_out, dtype=object)):
        raise ValueError(f"{data.numel()} bytes are no {kind} of shape {shape}")
    if kind.itemsize == 0:
        return np.empty(tuple(shape), kind)
    array = data.numpy().view(kind).reshape(laid_out)
    return array.T if order == "F" else array


def scalar_from(dtype: Any, text: Any) -> Any:
    """The NumPy scalar that `scalar_node` described.

    Raises:
        ValueError: that is none.
    """
    kind, data = numpy_dtype(dtype), bytes.fromhex(text)
    if len(data) != kind.itemsize:
        raise ValueError(f"{len(data)} bytes are no {kind}")
    return np.frombuffer(data, kind)[0] if data else np.zeros((), kind)[()]


def numpy_dtype(text: Any) -> Any:
    """The dtype of that text.

    Raises:
        ValueError: it is none whose contents are plain bytes.
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
        reason = f"{describe(tensor)}; of a subclass save the plain tensors that it holds"
    elif tensor.is_meta:
        reason = "it is on the device `meta` and has no contents; give it some first"
    elif tensor.is_quantized:
        reason = "it is quantized; save `int_repr()`, the scale and the zero point"
    elif tensor.is_nested:
        reason = "it is a nested tensor; save the list that `unbind()` gives"
    elif dtype_name(tensor.dtype) not in NAMES and dtype_name(tensor.dtype) not in OTHERS:
        reason = f"its dtype is {tensor.dtype}; view it as another one"
    elif tensor.numel() and not tensor.untyped_storage().nbytes():
        reason = "its storage was freed; gather it first"
    if reason:
        raise unsaveable(where, reason)


def sparse_parts(tensor: torch.Tensor, where: str) -> tuple[str, list[tuple[str, torch.Tensor]]]:
    """Layout and the dense tensors that make up a sparse one.

    Raises:
        SamebitsError: it is not coalesced, or of an opaque layout; `checkpoint-entry`.
    """
    if type(tensor) not in _PLAIN or tensor.is_meta:
        raise unsaveable(where, describe(tensor))
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        if not tensor.is_coalesced():
            raise unsaveable(where, "it is sparse and not coalesced; save `coalesce()` of it")
        return "sparse_coo", [("indices", tensor.indices()), ("values", tensor.values())]
    if tensor.layout in _BY_ROW:
        parts = [("crow_indices", tensor.crow_indices()), ("col_indices", tensor.col_indices())]
        return _BY_ROW[tensor.layout], [*parts, ("values", tensor.values())]
    if tensor.layout in _BY_COLUMN:
        parts = [("ccol_indices", tensor.ccol_indices()), ("row_indices", tensor.row_indices())]
        return _BY_COLUMN[tensor.layout], [*parts, ("values", tensor.values())]
    raise unsaveable(where, f"its layout is {tensor.layout}; save `to_dense()` of it")


def sparse_tensor(layout: str, shape: Sequence[int], parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sparse tensor that `sparse_parts` took apart.

    Raises:
        ValueError: that is none.
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
    """What a tensor is beside its contents and name, defaults left out."""
    facts: dict[str, Any] = {}
    name = dtype_name(tensor.dtype)
    if name not in NAMES:
        facts |= {"dtype": name, "shape": list(tensor.shape)}
    if tensor.device.type != "cpu":
        facts["device"] = str(tensor.device)
    if not tensor.is_contiguous() and is_dense(tensor):
        facts["strides"] = list(tensor.stride())
    return facts


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements lie next to each other in some order of the dimensions, without overlap."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def with_strides(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The same values laid out in memory by those strides.

    Raises:
        ValueError: they are not the strides of such a tensor.
    """
    sizes = zip(strides, tensor.shape, strict=False)
    expected = 1
    for stride, size in sorted(sizes):
        if size != 1 and stride != expected:
            raise ValueError(f"strides {list(strides)} do not fit the shape {list(tensor.shape)}")
        expected *= size
    if len(strides) != tensor.dim() or expected != tensor.numel():
        raise ValueError(f"strides {list(strides)} do not fit the shape {list(tensor.shape)}")
    laid_out = torch.empty_strided(
        tuple(tensor.shape), tuple(strides), dtype=tensor.dtype, device=tensor.device
    )
    return laid_out.copy_(tensor)
