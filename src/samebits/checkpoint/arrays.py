"""NumPy arrays and scalars in a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from samebits.checkpoint.refusals import unsaveable
from samebits.wording import with_article

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
