"""The parameters of each C kernel: the fields of native/portable/parameters.h, in their order.

A kernel is called with all of them by name (library.py). Its class here only declares their names and types:
mypy checks calls by it, and it is compared with the C header when the library is loaded.
"""

# No `from __future__ import annotations`: types are evaluated here, which is cheaper than from strings later.

from collections.abc import Sequence
from typing import Annotated, NamedTuple

Address = Annotated[int, "p"]
"""The address of the first element; 0 where there is none."""

Addresses = Annotated[Sequence[int], "ppp"]
Three = Annotated[Sequence[int], "qqq"]
Four = Annotated[Sequence[int], "qqqq"]
FourReals = Annotated[Sequence[float], "dddd"]

Extents = Annotated[Sequence[int], "*qqq"]
"""Sizes of the axes, their strides in a, their strides in b."""

Steps = Annotated[Sequence[float], "*qpppppdd"]
"""For each tensor: count, parameter, gradient, first, second, highest, minus the step, root."""


class Accumulate(NamedTuple):
    """Ordered accumulation; strides of n, m and c."""

    is_f64: bool
    kind: int
    out: Address
    src: Address
    indices: Address
    batch: int
    rows: int
    columns: int
    m: int
    src_strides: Three
    index_strides: Three
    bad: Address
    skip: bool


class Activation(NamedTuple):
    """A function of up to three inputs; `is_single` tells which inputs are one value for all outputs."""

    function: int
    is_f64: bool
    numel: int
    out: Address
    inputs: Addresses
    is_single: Three
    numbers: FourReals


class Attention(NamedTuple):
    """Attention, or its gradients; strides of batch, head and position, of the mask also of keys."""

    is_f64: bool
    is_backward: bool
    all_heads: int
    heads: int
    groups: int
    queries: int
    keys: int
    size: int
    value_size: int
    is_causal: bool
    query: Address
    query_strides: Three
    key: Address
    key_strides: Three
    value: Address
    value_strides: Three
    out: Address
    out_strides: Three
    mask: Address
    mask_strides: Four
    log: Address
    of_query: Address
    of_key: Address
    of_value: Address


class Conv(NamedTuple):
    """A convolution or its transpose; `depth` and `rows`: channels in a group of image and output."""

    is_f64: bool
    is_transposed: bool
    image: Address
    weight: Address
    bias: Address
    out: Address
    samples: int
    groups: int
    depth: int
    rows: int
    size: Three
    out_size: Three
    kernel: Three
    stride: Three
    padding: Three
    dilation: Three


class ConvWeight(NamedTuple):
    """The gradient of a convolution's weight; `gradient` is of its output."""

    is_f64: bool
    image: Address
    gradient: Address
    of_weight: Address
    samples: int
    groups: int
    depth: int
    rows: int
    size: Three
    out_size: Three
    kernel: Three
    stride: Three
    padding: Three
    dilation: Three


class ElementwiseBinary(NamedTuple):
    """A function of two numbers; `out` is other memory."""

    function: int
    is_f64: bool
    x: Address
    y: Address
    out: Address
    numel: int


class ElementwiseUnary(NamedTuple):
    """A function of one number; `out` is x or other memory."""

    function: int
    is_f64: bool
    x: Address
    out: Address
    numel: int


class Fft(NamedTuple):
    """Fourier transforms along the middle axis of (outer, n, inner)."""

    kind: int
    is_f64: bool
    is_inverse: bool
    outer: int
    n: int
    inner: int
    x: Address
    out: Address
    stages: int
    radices: Address
    table: Address
    first: Address
    turns: Address
    scale: float


class Gemm(NamedTuple):
    """`a @ b * alpha + added * beta`; strides of rows, of columns and of the batch."""

    is_f64: bool
    batches: int
    m: int
    n: int
    k: int
    a: Address
    a_strides: Three
    b: Address
    b_strides: Three
    out: Address
    out_strides: Three
    added: Address
    added_strides: Three
    alpha: float
    beta: float


class Lstm(NamedTuple):
    """The steps of one layer and direction; `keeps` tells whether the gates and cell states of all stay."""

    is_f64: bool
    is_reversed: bool
    keeps: bool
    steps: int
    batch: int
    size: int
    x: Address
    weight: Address
    bias: Address
    first_out: Address
    first_cell: Address
    out: Address
    gates: Address
    cells: Address
    tanh_cells: Address


class LstmGradient(NamedTuple):
    """The gradients of `Lstm`: of weight and bias where they are not 0."""

    is_f64: bool
    is_reversed: bool
    steps: int
    batch: int
    size: int
    wants_first_out: bool
    weight: Address
    first_out: Address
    first_cell: Address
    course: Addresses
    slopes: Addresses
    of_out_strides: Three
    of_x: Address
    of_weight: Address
    of_bias: Address
    of_first_out: Address
    of_first_cell: Address


class Optimizer(NamedTuple):
    """A step of Adam or SGD over some tensors."""

    is_f64: bool
    is_sgd: bool
    flags: int
    shrink: float
    decay: float
    weight: float
    keep: float
    gain: float
    eps: float
    tensors: int
    each: Steps


class Pairs(NamedTuple):
    """A function of two complex numbers; `out` is other memory."""

    function: int
    is_f64: bool
    x: Address
    y: Address
    out: Address
    numel: int


class Random(NamedTuple):
    """Random values; `first`: block of the first word; `stream`, `lane`: upper words of the counter."""

    kind: int
    out: Address
    numel: int
    key: int
    first: int
    stream: int
    lane: int
    bits: int
    low: int
    source: Address
    a: float
    b: float


class Reduce(NamedTuple):
    """A reduction; `reduced` has a bit for each reduced axis."""

    kind: int
    is_f64: bool
    a: Address
    b: Address
    mean: Address
    out: Address
    reduced: int
    axes: int
    extents: Extents


class Repeat(NamedTuple):
    """Rows of pixels, each repeated `across` times, and each row `down` times."""

    is_f64: bool
    x: Address
    out: Address
    rows: int
    width: int
    across: int
    down: int


class Scan(NamedTuple):
    """Running sums or products of (outer, n, inner) values."""

    is_product: bool
    is_f64: bool
    x: Address
    out: Address
    outer: int
    n: int
    inner: int


class Softmax(NamedTuple):
    """Softmax of rows of n values, its logarithm, or the gradient of one of them."""

    kind: int
    is_f64: bool
    x: Address
    gradient: Address
    out: Address
    rows: int
    n: int


class Sqrt(NamedTuple):
    """Square roots."""

    is_f64: bool
    x: Address
    out: Address
    numel: int


class Window(NamedTuple):
    """Means over windows of three dimensions, or their gradient."""

    is_f64: bool
    is_backward: bool
    wide: Address
    narrow: Address
    planes: int
    channels: int
    sample_step: int
    divisor: int
    size: Three
    outputs: Three
    first: Addresses
    end: Addresses
    counts: Addresses
