"""What a difference between two environments can change: results, and how sure that is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    Path = tuple[str, ...]

ANY = "*"
"""Stands for every entry of a table of facts."""


class Results(StrEnum):
    """Which results of a run can be others."""

    ALL = "all"
    SETS = "sets"
    NORMAL_NUMBERS = "normal-numbers"
    SUMS = "sums"
    PRODUCTS = "products"
    LOW_PRECISION_PRODUCTS = "low-precision-products"
    CONVOLUTIONS = "convolutions"
    CONVOLUTION_GRADIENTS = "convolution-gradients"
    NORMALISATIONS = "normalisations"
    BATCH_NORMS = "batch-norms"
    SOFTMAX = "softmax"
    ACTIVATIONS = "activations"
    ATTENTION = "attention"
    RECURRENT = "recurrent"
    DECOMPOSITIONS = "decompositions"
    SPARSE_PRODUCTS = "sparse-products"
    FOURIER = "fourier"
    GRID_SAMPLING = "grid-sampling"
    CTC_LOSS = "ctc-loss"
    OPTIMIZERS = "optimizers"
    COMPILED = "compiled"
    COLLECTIVES = "collectives"
    CUDA = "cuda"
    PACKAGE = "package"
    LIBRARY_MATHS = "library-maths"


OPS = {
    Results.NORMAL_NUMBERS: ("normal", "randn"),
    Results.SUMS: ("sum", "mean", "var", "std", "norm", "dot", "cumsum"),
    Results.PRODUCTS: ("mm", "matmul", "linear", "mv", "dot", "einsum"),
    Results.LOW_PRECISION_PRODUCTS: ("mm", "matmul", "linear"),
    Results.CONVOLUTIONS: ("conv",),
    Results.CONVOLUTION_GRADIENTS: ("convolution_backward",),
    Results.NORMALISATIONS: ("layer_norm", "batch_norm", "group_norm", "rms_norm"),
    Results.BATCH_NORMS: ("batch_norm",),
    Results.SOFTMAX: ("softmax", "nll_loss", "cross_entropy", "logsumexp"),
    Results.ACTIVATIONS: (
        "sigmoid", "silu", "gelu", "elu", "softplus", "tanh", "exp", "pow", "log", "sin", "cos", "erf",
    ),
    Results.ATTENTION: ("attention",),
    Results.RECURRENT: ("lstm", "gru", "rnn"),
    Results.DECOMPOSITIONS: ("svd", "qr", "eigh", "cholesky", "lstsq", "inv", "solve", "lu_"),
    Results.SPARSE_PRODUCTS: ("sparse",),
    Results.FOURIER: ("fft",),
    Results.GRID_SAMPLING: ("cudnn_grid_sampler",),
    Results.CTC_LOSS: ("cudnn_ctc_loss",),
    Results.OPTIMIZERS: ("adam", "sgd", "lerp", "addcmul", "addcdiv"),
    Results.COLLECTIVES: ("all_reduce", "reduce_scatter", "allreduce"),
}  # fmt: skip
"""Parts of the names of the ops whose results they are."""

BY_THREADS = (
    Results.SUMS, Results.CONVOLUTION_GRADIENTS, Results.NORMALISATIONS, Results.SOFTMAX, Results.ACTIVATIONS,
)  # fmt: skip
BY_ONEDNN = (
    Results.CONVOLUTIONS, Results.RECURRENT, Results.LOW_PRECISION_PRODUCTS, Results.ACTIVATIONS,
)  # fmt: skip
BY_MKL = (Results.PRODUCTS, Results.DECOMPOSITIONS, Results.ATTENTION)
BY_CUBLAS = BY_MKL
BY_CUDNN = (
    Results.CONVOLUTIONS, Results.CONVOLUTION_GRADIENTS, Results.BATCH_NORMS, Results.RECURRENT,
    Results.ATTENTION, Results.GRID_SAMPLING, Results.CTC_LOSS,
)  # fmt: skip
BY_ATEN = (
    Results.NORMAL_NUMBERS, Results.SOFTMAX, Results.NORMALISATIONS, Results.ACTIVATIONS, Results.ATTENTION,
    Results.SUMS, Results.OPTIMIZERS,
)  # fmt: skip


class Strength(enum.IntEnum):
    """How sure it is that a difference can change bits; the surest first."""

    INPUT = 0
    """It is an input of the run, as its code and its data are."""
    MEASURED = 1
    DOCUMENTED = 2
    POSSIBLE = 3


@dataclass(frozen=True, slots=True)
class Influence:
    """What a difference in one fact can change.

    Args:
        path: of the fact: its keys in `Environment.to_dict`, `ANY` for every entry of a table.
        results: that can be others.
        strength: how sure that is.
        follows: facts that differ because this one does, and are not told on their own.
        effect: facts through which it works. If these are known and equal in both environments, it can hardly
            matter.
        on_gpu: whether it matters only where a GPU was in use.
    """

    path: Path
    results: tuple[Results, ...]
    strength: Strength
    follows: tuple[Path, ...] = ()
    effect: tuple[Path, ...] = ()
    on_gpu: bool = False
