"""Generator states as JSON: integers of any size, floats and arrays, exactly."""

from __future__ import annotations

import json
import sys
from typing import Any

_DTYPES = ("uint8", "uint32", "uint64", "int32", "int64", "float64")


def to_json(state: Any) -> bytes:
    """Encode a state.

    Args:
        state: numbers, text, lists, dicts and NumPy arrays of at most one dimension.

    Raises:
        TypeError: it contains something else.
    """
    return json.dumps(state, default=_encode_numpy, separators=(",", ":")).encode()


def from_json(data: bytes) -> Any:
    """Decode what `to_json` made.

    Raises:
        ValueError: that is no such encoding.
    """
    try:
        return json.loads(data, object_hook=_decode_numpy)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _encode_numpy(value: Any) -> Any:
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.ndarray) and value.dtype.name in _DTYPES and value.ndim == 1:
        little = value.astype(value.dtype.newbyteorder("<"))
        return {"dtype": value.dtype.name, "hex": little.tobytes().hex()}
    if isinstance(value, (numpy.integer, numpy.floating)):
        return value.item()
    raise TypeError(f"a state holds {type(value).__name__}; expected numbers, text, lists and arrays")


def _decode_numpy(value: dict[str, Any]) -> Any:
    if value.keys() != {"dtype", "hex"}:
        return value
    import numpy as np

    name = value["dtype"]
    if name not in _DTYPES:
        raise ValueError(f"an array of dtype {name!r}")
    dtype = np.dtype(name)
    data = np.frombuffer(bytes.fromhex(value["hex"]), dtype.newbyteorder("<"))
    return data.astype(dtype)
