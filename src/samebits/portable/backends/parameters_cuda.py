"""The parameters of the kernels that only a GPU has: the structs of native/cuda/portable_*.cu."""

# No `from __future__ import annotations`: types are evaluated here, as in parameters.py.

from typing import Annotated, NamedTuple

from samebits.portable.backends.parameters import Address, Four, Three

ON_DEVICE = 16
"""How many axes of a reduction, and tensors of a step of an optimizer, one launch takes (`SBP_ON_DEVICE`)."""

Axes = Annotated[tuple[int, ...], "qqq" * ON_DEVICE]
"""For each axis its size, its stride in a and that in b."""


class SbdReduce(NamedTuple):
    """The chunks of a reduction."""

    kind: int
    a: Address
    b: Address
    mean: Address
    out: Address
    outputs: int
    n: int
    chunks: int
    kept: int
    reduced: int
    keep: Axes
    over: Axes


class SbdBranches(NamedTuple):
    """A part of the tree over chunks: `n` rows of `width` sums."""

    is_product: bool
    sums: Address
    out: Address
    n: int
    width: int


class SbdChannelGradient(NamedTuple):
    """`fma(mean - x, slope, gradient * weight - shift) * scale`, with values of each channel."""

    x: Address
    gradient: Address
    mean: Address
    slope: Address
    weight: Address
    shift: Address
    scale: Address
    out: Address
    outer: int
    channels: int
    inner: int


class SbdNormalRows(NamedTuple):
    """`(x - mean) * rstd` of each row."""

    x: Address
    mean: Address
    rstd: Address
    out: Address
    rows: int
    n: int


class SbdWeights(NamedTuple):
    """Scores of attention become weights; strides of batch, head, query and key."""

    scores: Address
    mask: Address
    log: Address
    all_heads: int
    heads: int
    queries: int
    keys: int
    is_causal: bool
    mask_strides: Four


class SbdSlopes(NamedTuple):
    """Gradients of weights of attention become those of scores."""

    slopes: Address
    weights: Address
    all_heads: int
    queries: int
    keys: int
    is_causal: bool


class SbdLstmStep(NamedTuple):
    """A step of an LSTM."""

    product: Address
    bias: Address
    x: Address
    before: Address
    out: Address
    gates: Address
    cell: Address
    tanh_cell: Address
    batch: int
    size: int


class SbdLstmStepGradient(NamedTuple):
    """The gradients at a step of an LSTM."""

    gates: Address
    tanh_cell: Address
    before: Address
    of_out: Address
    of_next: Address
    of_cell: Address
    of_gates: Address
    of_before: Address
    batch: int
    size: int
    out_step: int


class GemmProduct(NamedTuple):
    """A product of two matrices: `gemm_product` of gemm_body.h, whose last four numbers have 32 bits each."""

    a: Address
    b: Address
    c: Address
    a_line: int
    b_line: int
    a_batch: int
    b_batch: int
    c_batch: int
    m_and_n: int
    k_and_blocks: int


class SbdConvWeight(NamedTuple):
    """A share of the blocks of k of the gradient of a weight; `chains` are those of each block."""

    image: Address
    gradient: Address
    chains: Address
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
    first_block: int
    blocks: int
    blocks_each: int


class SbdChains(NamedTuple):
    """Chains that are added to `out` in ascending order, or from zero on."""

    chains: Address
    out: Address
    groups: int
    outputs: int
    blocks: int
    is_first: bool
