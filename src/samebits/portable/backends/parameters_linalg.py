"""The parameters of the C kernels of linear algebra, as those in parameters.py."""

# No `from __future__ import annotations`, as there.

from typing import NamedTuple

from samebits.portable.backends.parameters import Address, Three


class Cholesky(NamedTuple):
    """The lower factors of (batch, n, n) matrices; `out` and `info` are zeros at first."""

    is_f64: bool
    batch: int
    n: int
    x: Address
    out: Address
    info: Address


class Householder(NamedTuple):
    """Upper triangles in place, and the reflections that make them."""

    is_f64: bool
    batch: int
    rows: int
    columns: int
    work: Address
    v: Address
    tau: Address


class Jacobi(NamedTuple):
    """Rotations of (batch, n, length) rows in place, of which the first `width` are the matrix."""

    batch: int
    n: int
    width: int
    length: int
    rows: Address
    limits: Address
    tolerance: float
    most_sweeps: int
    done: Address


class Lu(NamedTuple):
    """Both factors, over the matrices."""

    is_f64: bool
    is_pivoted: bool
    batch: int
    rows: int
    columns: int
    a: Address
    pivots: Address
    info: Address


class Reflections(NamedTuple):
    """The product of reflections, over the unit matrix in q."""

    is_f64: bool
    batch: int
    rows: int
    columns: int
    steps: int
    v: Address
    tau: Address
    q: Address


class Triangular(NamedTuple):
    """The solutions of triangular systems, over x; strides of rows, columns and the batch."""

    is_f64: bool
    is_upper: bool
    is_unit: bool
    batch: int
    n: int
    columns: int
    a: Address
    a_strides: Three
    x: Address
