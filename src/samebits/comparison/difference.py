"""Measures how far captured tensors of two runs are apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.recording.distance import Elements, element_difference
from samebits.recording.probes.captures import shape_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from samebits.recording.distance import Difference

_MOST_ELEMENTS = 1 << 44  # of a tensor of which some are kept; more are in no machine's memory
# Names as in https://github.com/huggingface/safetensors, safetensors/src/tensor.rs at 0.6.
_DTYPES = {
    **{f"I{size}": f"int{size}" for size in (8, 16, 32, 64)},
    **{f"U{size}": f"uint{size}" for size in (8, 16, 32, 64)},
    **{f"F{size}": f"float{size}" for size in (16, 32, 64)},
    "BF16": "bfloat16",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}


def captured_difference(
    a: Mapping[int, bytes], b: Mapping[int, bytes], complex_at: Collection[int] = ()
) -> Difference | None:
    """Measure the first captured tensor of an event that differs between two runs.

    Args:
        a: captured tensors of the event in the first run, as safetensors files, by position.
        b: the same of the second run.
        complex_at: positions of complex tensors, which are stored as pairs.

    Returns:
        None when no tensor was captured in both runs, or none has the same dtype and shape.

    Raises:
        SamebitsError: a captured tensor is damaged.
    """
    last = None
    for first, second in _decoded(a, b, complex_at):
        last = element_difference(first, second)
        if last.elements:
            return last
    return last


@dataclass(frozen=True)
class ElementPair:
    """One element of a tensor that differs between two runs.

    Args:
        index: in the tensor.
        first: its value in the first run, as text that shows every digit.
        second: the same of the second run.
        ulp: the distance in units in the last place; None where that means nothing.
    """

    index: tuple[int, ...]
    first: str
    second: str
    ulp: int | None


def differing_elements(a: Elements, b: Elements, most: int) -> tuple[ElementPair, ...]:
    """List the first elements that differ between two tensors of the same dtype and shape.

    Args:
        a: of one run.
        b: of the other.
        most: how many are listed.
    """
    import numpy as np

    unequal = (a.bits != b.bits).reshape(-1, a.parts).any(1)
    return tuple(_element_pair(a, b, int(number)) for number in np.flatnonzero(unequal)[:most])


def _element_pair(a: Elements, b: Elements, number: int) -> ElementPair:
    one, other = (
        Elements(each.dtype, (), each.bits[number * each.parts : (number + 1) * each.parts])
        for each in (a, b)
    )
    distance = element_difference(one, other)
    return ElementPair(a.index(number), one.text(0), other.text(0), distance.max_ulp)


def captured_elements(
    a: Mapping[int, bytes], b: Mapping[int, bytes], complex_at: Collection[int], most: int
) -> tuple[ElementPair, ...]:
    """List the first elements that differ in the first captured tensor of an event that does.

    Args:
        a: captured tensors of the event in the first run, as safetensors files, by position.
        b: the same of the second run.
        complex_at: positions of complex tensors, which are stored as pairs.
        most: how many are listed.

    Raises:
        SamebitsError: a captured tensor is damaged.
    """
    for first, second in _decoded(a, b, complex_at):
        found = differing_elements(first, second, most)
        if found:
            return found
    return ()


def _decoded(
    a: Mapping[int, bytes], b: Mapping[int, bytes], complex_at: Collection[int]
) -> Iterator[tuple[Elements, Elements]]:
    """Yield the tensors that both runs captured, where they have the same dtype and shape."""
    for position in sorted(a.keys() & b.keys()):
        first, second = decode(a[position]), decode(b[position])
        if position in complex_at:
            first, second = _complex(first), _complex(second)
        if (first.dtype, first.shape, first.whole) == (second.dtype, second.shape, second.whole):
            yield first, second


def decode(data: bytes) -> Elements:
    """Return the elements of the only tensor in a safetensors file.

    Raises:
        SamebitsError: it is no such file.
    """
    import numpy as np
    from safetensors import SafetensorError, deserialize

    try:
        tensors = deserialize(data)  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError, RuntimeError, KeyError, OverflowError, MemoryError) as error:
        text = " ".join(str(error).split())[:100]
        raise _damaged(text) from None
    if len(tensors) != 1:
        raise _damaged(f"it holds {len(tensors)} tensors, expected one")
    name, held = tensors[0]
    dtype, shape = _DTYPES.get(held["dtype"]), tuple(held["shape"])
    if dtype is None:
        raise _damaged(f"elements of the dtype {held['dtype']}")
    whole = shape_in(name)
    if whole is not None and not (shape and 0 < shape[0] < math.prod(whole) < _MOST_ELEMENTS):
        raise _damaged(f"{shape} elements of a tensor of shape {whole}")
    n_parts = math.prod(shape) * (2 if dtype == "complex64" else 1)
    size = len(held["data"]) // n_parts if n_parts else 1
    return Elements(dtype, shape, np.frombuffer(held["data"], dtype=f"<i{size}"), whole)


def _complex(pairs: Elements) -> Elements:
    """Return pairs as complex elements, and anything else as it is."""
    dtype = {"float32": "complex64", "float64": "complex128"}.get(pairs.dtype)
    if dtype is None or pairs.shape[-1:] != (2,):
        return pairs
    return Elements(dtype, pairs.shape[:-1], pairs.bits, pairs.whole)


def _damaged(what: str) -> SamebitsError:
    return SamebitsError(
        f"a captured tensor in the record is damaged ({what}): record the run again", slug="record-damaged"
    )
