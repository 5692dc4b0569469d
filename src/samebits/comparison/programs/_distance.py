"""How far two tensors of two programs are apart, and whether one is the other in another form."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, permutations
from math import isfinite
from operator import mul
from typing import TYPE_CHECKING, Any

from samebits.comparison.programs.outcome import Distance, Part, Relation
from samebits.recording.distance import (
    Elements,
    as_doubles,
    as_integers,
    element_difference,
    index_of,
    is_float,
)
from samebits.recording.kept_values import plain_dtype, rounded

if TYPE_CHECKING:
    import numpy as np

    from samebits.recording.kept_values import Kept
    from samebits.records.events import TensorInfo

_MOST_DIMENSIONS = 5  # that are permuted
_LARGEST_EXACT = 2.0**53  # integers from here on may be rounded when they become float64
# The less precise of two comes first.
_PRECISIONS = (
    "float8_e8m0fnu", "float8_e5m2fnuz", "float8_e5m2", "float8_e4m3fnuz", "float8_e4m3fn",
    "bfloat16", "float16", "complex32", "float32", "complex64", "float64", "complex128",
)  # fmt: skip
_Infos = tuple["TensorInfo", "TensorInfo"]


def measure(infos: _Infos, a: Kept | None, b: Kept | None) -> Distance:
    """Return the distance between two tensors whose digests differ.

    Args:
        infos: the descriptions of both.
        a: what is kept of the first; None if nothing is.
        b: the same of the second.
    """
    if a is None or b is None or any(plain_dtype(info.dtype) != info.dtype for info in infos):
        return Distance(Relation.NOT_KEPT)  # of a quantized tensor, the record has no scale
    shapes = infos[0].shape, infos[1].shape
    if not _stand_in_the_same_places(*shapes):
        return _of_other_shapes(shapes, a, b)
    if shapes[0] != shapes[1] and _same_row(a, b):
        return Distance(Relation.SAME_VALUES, a.total, a.total, 0)
    distance = _element_by_element(shapes[0], a, b)
    if distance.relation is Relation.SAME_VALUES and _alike_but_for_digest(infos):
        return Distance(Relation.NOT_KEPT)
    if distance.relation is not Relation.VALUES:
        return distance
    relation, order = _rearranged(shapes, a, b)
    return distance if relation is None else replace(distance, relation=relation, permutation=order)


_UNKNOWN = 0.5
_SAME_ELEMENTS = 0.9


def likeness(shapes: tuple[tuple[int, ...], tuple[int, ...]], a: Kept | None, b: Kept | None) -> float:
    """Return how like two tensors are, from 0 to 1: forms of one tensor are liker than two others.

    It is 1 minus the norm of their difference over the sum of their norms. Where the elements are not known,
    nothing speaks for or against.

    Args:
        shapes: of both.
        a: what is kept of the first.
        b: what is kept of the second.
    """
    import numpy as np

    if a is None or b is None or a.total != b.total:
        return _UNKNOWN
    x, y = _both_doubles(a.elements, b.elements)
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    with np.errstate(over="ignore", invalid="ignore"):
        norms = float(np.linalg.norm(x)) + float(np.linalg.norm(y))
        apart = float(np.linalg.norm(x - y))
    like = 1 - apart / norms if norms and isfinite(norms) else _UNKNOWN
    return max(like, _SAME_ELEMENTS) if _rearranged(shapes, a, b)[0] is not None else like


def _alike_but_for_digest(infos: _Infos) -> bool:
    """Tell whether only something else than the elements can differ: the scale of a quantized tensor."""
    return infos[0].dtype == infos[1].dtype and infos[0].shape == infos[1].shape


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([length for length in shape if length != 1])


def _stand_in_the_same_places(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Tell whether one shape is the other, but for dimensions of length 1, and for neighbours made into one.

    For example, `(batch, time, width)` and `(batch * time, width)`.
    """
    a, b = _squeezed(a), _squeezed(b)
    return a == b or _is_merged(a, b) or _is_merged(b, a)


def _is_merged(merged: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Tell whether a shape becomes another one when neighbouring dimensions are made into one."""
    ends = {0}  # how many dimensions can have become those seen so far: an empty one leaves a choice
    for wanted in merged:
        ends = {
            stop
            for start in ends
            for stop, length in enumerate(accumulate(shape[start:], mul), start + 1)
            if length == wanted
        }
    return len(shape) in ends


def _same_row(a: Kept, b: Kept) -> bool:
    return a.elements.dtype == b.elements.dtype and bool(a.flat) and a.flat == b.flat


def _of_other_shapes(shapes: tuple[tuple[int, ...], tuple[int, ...]], a: Kept, b: Kept) -> Distance:
    """Compare tensors whose elements do not stand in the same places, if there are elements."""
    if a.total == b.total and a.total:
        if (a.is_whole and _equal(a.elements, b.elements).all()) or _same_row(a, b):
            return Distance(Relation.SAME_VALUES, a.total, a.total, 0)
        relation, order = _rearranged(shapes, a, b)
        if relation is not None:
            return Distance(relation, a.total, a.total, permutation=order)
        distance = _element_by_element(shapes[0], a, b)
        if distance.relation in (Relation.SAME_VALUES, Relation.ROUNDED):
            return distance
    part = _part(shapes, a, b)
    if part is not None:
        return Distance(Relation.PART, min(a.total, b.total), a.total, 0, part=part)
    return Distance(Relation.OTHER_SIZE, total=a.total)


def _element_by_element(shape: tuple[int, ...], a: Kept, b: Kept) -> Distance:
    """Compare elements that stand in the same places; those of two dtypes by the less precise one."""
    x, y, dtype = _alike(a.elements, b.elements)
    compared = int(x.shape[0])
    if a.elements.dtype != b.elements.dtype and _equal(a.elements, b.elements).all():
        return Distance(Relation.SAME_VALUES, compared, a.total, 0)
    if not dtype:  # a number and a float, a real and a complex one
        return _by_value(shape, a, b)
    found = element_difference(x, y)
    if not found.elements and a.elements.dtype == b.elements.dtype:
        return Distance(Relation.SAME_VALUES if a.is_whole else Relation.VALUES, compared, a.total, 0)
    if not found.elements:
        return Distance(Relation.ROUNDED, compared, a.total, 0, 0, dtype, 0.0, 0.0)
    first = None if found.first_index is None else index_of(a.index(found.first_index[0]), shape)
    return Distance(
        Relation.VALUES, compared, a.total, found.elements, found.max_ulp, dtype, _finite(found.max_abs),
        _relative(found.max_abs, x, y), first, found.values,
    )  # fmt: skip


def _alike(a: Elements, b: Elements) -> tuple[Elements, Elements, str]:
    """Return both in one dtype, and its name; empty where no dtype suits both."""
    if a.dtype == b.dtype:
        return a, b, a.dtype
    if not all(each.dtype in _PRECISIONS for each in (a, b)) or a.parts != b.parts:
        return a, b, ""
    dtype = min(a.dtype, b.dtype, key=_PRECISIONS.index)
    return rounded(a, dtype), rounded(b, dtype), dtype


def _doubles(elements: Elements) -> np.ndarray[Any, Any]:
    """Return the numbers as float64; of complex ones both parts."""
    import numpy as np

    if is_float(elements.part_dtype):
        return as_doubles(elements.bits, elements.part_dtype)
    return as_integers(elements.bits, elements.dtype).astype(np.float64)


def _both_doubles(a: Elements, b: Elements) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the numbers of both; a real one beside complex ones has an imaginary part of zero."""
    import numpy as np

    x, y = _doubles(a), _doubles(b)
    if a.parts < b.parts:
        x = np.stack([x, np.zeros_like(x)], axis=1).reshape(-1)
    elif b.parts < a.parts:
        y = np.stack([y, np.zeros_like(y)], axis=1).reshape(-1)
    return x, y


def _equal(a: Elements, b: Elements) -> np.ndarray[Any, Any]:
    """Tell of each element whether it is the same number in both; NaN is NaN, and the zeros are two."""
    import numpy as np

    if a.dtype == b.dtype:
        same: np.ndarray[Any, Any] = a.bits == b.bits
        return same
    if not is_float(a.part_dtype) and not is_float(b.part_dtype):
        exact: np.ndarray[Any, Any] = _whole(a) == _whole(b)
        return exact
    x, y = _both_doubles(a, b)
    equal: np.ndarray[Any, Any] = (x == y) & (np.signbit(x) == np.signbit(y)) | (np.isnan(x) & np.isnan(y))
    if is_float(a.part_dtype) != is_float(b.part_dtype):
        equal &= np.abs(x) < _LARGEST_EXACT
    return equal


def _whole(elements: Elements) -> np.ndarray[Any, Any]:
    """Return integers so that those of two dtypes compare exactly."""
    import numpy as np

    numbers = as_integers(elements.bits, elements.dtype)
    return numbers.astype(object if numbers.dtype == np.uint64 else np.int64)


def _by_value(shape: tuple[int, ...], a: Kept, b: Kept) -> Distance:
    """Compare numbers of kinds that have no unit in the last place in common."""
    import numpy as np

    unequal = ~_equal(a.elements, b.elements)
    x, y = (each[unequal] for each in _both_doubles(a.elements, b.elements))
    parts = max(a.elements.parts, b.elements.parts)
    with np.errstate(invalid="ignore", over="ignore"):
        largest = float(np.abs(x - y).max())
    rows = unequal.reshape(-1, parts).any(1)
    number = int(rows.argmax())
    return Distance(
        Relation.VALUES, a.elements.shape[0], a.total, int(rows.sum()), None, "",
        _finite(largest), _relative(largest, a.elements, b.elements),
        index_of(a.index(number), shape), (a.elements.text(number), b.elements.text(number)),
    )  # fmt: skip


def _finite(number: float | None) -> float | None:
    """Return a number; None for one that JSON cannot hold, as two numbers of float64 may be apart."""
    return number if number is not None and isfinite(number) else None


def _relative(max_abs: float | None, a: Elements, b: Elements) -> float | None:
    """Return the largest difference divided by the largest absolute value in either tensor."""
    import numpy as np

    if max_abs is None or not isfinite(max_abs):
        return None
    if max_abs == 0:  # the two zeros
        return 0.0
    largest = 0.0
    for each in (a, b):
        values = np.abs(_doubles(each))
        values = values[np.isfinite(values)]
        largest = max(largest, float(values.max()) if values.size else 0.0)
    return max_abs / largest if largest and isfinite(max_abs / largest) else None


def _rearranged(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], a: Kept, b: Kept
) -> tuple[Relation | None, tuple[int, ...]]:
    """Tell whether both have the same elements in another order, and in which if it is one of dimensions."""
    if a.elements.dtype != b.elements.dtype or a.total != b.total or a.total < 2:
        return None, ()
    if not a.is_whole:
        same = bool(a.unordered) and a.unordered == b.unordered
        return (Relation.REORDERED if same else None), ()
    if not _same_multiset(a.elements, b.elements):
        return None, ()
    x, y = (_shaped(kept.elements, shape) for kept, shape in zip((a, b), shapes, strict=True))
    n_dims = len(shapes[0])
    orders = permutations(range(n_dims)) if 2 <= n_dims <= _MOST_DIMENSIONS else ()
    for order in orders:
        moved = x.transpose(*order, n_dims)
        if (
            moved.size == y.size
            and _squeezed(moved.shape) == _squeezed(y.shape)
            and (moved.reshape(-1) == y.reshape(-1)).all()
        ):
            return Relation.TRANSPOSED, order
    return Relation.REORDERED, ()


def _same_multiset(a: Elements, b: Elements) -> bool:
    import numpy as np

    rows = [each.bits.reshape(-1, each.parts) for each in (a, b)]
    orders = [np.lexsort(row.T) for row in rows]
    return bool((rows[0][orders[0]] == rows[1][orders[1]]).all())


def _shaped(elements: Elements, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the bits of all elements in their shape, with one more dimension for the parts of an element."""
    return elements.bits.reshape(*shape, elements.parts)


def _part(shapes: tuple[tuple[int, ...], tuple[int, ...]], a: Kept, b: Kept) -> Part | None:
    """Return which part of the larger tensor the smaller one is, if it is cut along one dimension."""
    if not (a.is_whole and b.is_whole) or a.elements.dtype != b.elements.dtype or a.total == b.total:
        return None
    (large, shape), (small, cut) = sorted(zip((a, b), shapes, strict=True), key=lambda each: -each[0].total)
    unlike = [d for d, (n, m) in enumerate(zip(shape, cut, strict=False)) if n != m]
    if len(shape) != len(cut) or len(unlike) != 1 or not small.total:
        return None
    dimension, kept = unlike[0], cut[unlike[0]]
    whole, wanted = _shaped(large.elements, shape), _shaped(small.elements, cut)
    for is_last in (True, False):
        start = shape[dimension] - kept if is_last else 0
        if (whole.take(range(start, start + kept), axis=dimension) == wanted).all():
            return Part(dimension, is_last, kept, shape[dimension])
    return None
