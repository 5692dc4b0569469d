"""The ops of torch that give the same bits everywhere as they are, some of them for some arguments only.

A name stands for the op, all its overloads, its in-place op (`mul_`) and its ops with `out`. The proof is
tests/integration/test_portable_exact.py, which runs every one of them under each instruction set of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from samebits._torch.portable import name_of, op_names
from samebits.portable._tensors import LOW_PRECISION


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = _names(
    """
    _conj _neg_view _reshape_alias _unsafe_view alias as_strided detach diagonal expand permute select slice
    split split_with_sizes squeeze t transpose unbind unfold unsafe_split unsafe_split_with_sizes unsqueeze
    view view_as_complex view_as_real
    """
)
"""Ops that give another view of the same memory."""

COPIES = _names(
    """
    _chunk_cat _conj_copy _conj_physical _neg_view_copy _reshape_copy _to_sparse _to_sparse_csc
    _to_sparse_csr _unsafe_index _unsafe_masked_index alias_copy as_strided_copy as_strided_scatter block_diag
    cat channel_shuffle clone complex conj_physical constant_pad_nd copy detach_copy diag_embed
    diagonal_backward diagonal_copy diagonal_scatter embedding expand_copy fill flip gather im2col index
    index_fill index_select lift lift_fresh lift_fresh_copy masked_fill masked_scatter
    masked_scatter_backward masked_select narrow_copy permute_copy pixel_shuffle pixel_unshuffle
    reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d
    replication_pad2d replication_pad3d resize resize_as roll rot90 scatter select_backward select_copy
    select_scatter set slice_backward slice_copy slice_scatter split_copy split_with_sizes_copy
    squeeze_copy stack t_copy take transpose_copy tril triu unbind_copy unfold_copy unique_consecutive
    unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy where zero
    """
)
"""Ops that copy elements and compute nothing."""

FACTORIES = _names(
    """
    _efficientzerotensor _new_zeros_with_same_feature_meta empty empty_like empty_permuted empty_strided
    eye full full_like new_empty new_empty_strided new_full new_ones new_zeros ones ones_like
    scalar_tensor tril_indices triu_indices zeros zeros_like
    """
)
"""Ops that make tensors."""

COMPUTED_FACTORIES = _names(
    """
    arange bartlett_window blackman_window fft_fftfreq fft_rfftfreq hamming_window hann_window kaiser_window
    linspace logspace normal rand randint randn randperm
    """
)
"""Ops that make tensors of nothing and have handlers; the others only fill them."""

QUERIES = _names(
    """
    _assert_async _assert_scalar _assert_tensor_metadata _functional_assert_async
    _functional_assert_scalar _has_same_storage_numel _is_all_true _is_any_true _linalg_check_errors
    _local_scalar_dense all any count_nonzero equal is_pinned is_same_size is_set_to nonzero nonzero_static
    sym_constrain_range sym_constrain_range_for_size
    """
)
"""Ops that answer with integers, bools or a copy."""

MOVES = VIEWS | COPIES | FACTORIES | QUERIES
"""Ops that compute nothing."""

PINNED = _names("_pin_memory")
"""Copies that only a machine with a GPU can make."""

SPARSE = _names(
    """
    _coalesced _indices _sparse_coo_tensor_with_dims_and_tensors _values ccol_indices clone col_indices copy
    _dimI _dimV _nnz crow_indices dense_dim detach empty_like indices is_coalesced row_indices
    sparse_compressed_tensor sparse_coo_tensor sparse_dim t transpose values zero zeros_like
    """
)
"""Ops of sparse tensors that compute nothing."""

COMPARISONS = _names(
    """
    allclose bucketize eq ge gt isin isinf isnan isneginf isposinf le logical_and logical_not logical_or
    logical_xor lt ne searchsorted
    """
)
"""Ops that compare."""

SINGLE = _names(
    """
    _prelu_kernel _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d abs
    adaptive_max_pool2d adaptive_max_pool3d add ceil div floor floor_divide frac hardtanh_backward
    heaviside leaky_relu leaky_relu_backward max_pool2d_with_indices max_pool3d_with_indices mul
    nan_to_num neg nextafter reciprocal round rsub sgn sign sub threshold threshold_backward trunc
    upsample_nearest1d upsample_nearest2d upsample_nearest3d
    """
)
"""Ops whose every float output is one IEEE operation, a choice, or a short fixed sequence of these."""

EXACT = COMPARISONS | SINGLE
"""Ops whose results are the same everywhere."""

_BETWEEN_KINDS = _names("_to_sparse _to_sparse_csc _to_sparse_csr copy")
COMPLEX = (MOVES - _BETWEEN_KINDS) | _names(
    "eq isinf isnan logical_and logical_not logical_or logical_xor ne"
)
"""Ops that compute nothing of complex numbers that could differ."""

INTEGERS = _names(
    """
    __lshift__ __rshift__ _unique2 _unsafe_masked_index_put_accumulate
    add addbmm addcmul addmm addmv amax amin aminmax arange baddbmm bincount bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm clamp clamp_max
    clamp_min cumprod cumsum dot fmax fmin fmod gcd hardtanh index_add index_copy index_reduce
    lcm maximum minimum mm mv pow prod relu remainder rsub scatter_add scatter_reduce signbit sub sum
    trace unique_consecutive unique_dim unique_dim_consecutive
    """
)
"""Ops that are exact when all that goes in and out is an integer or a bool, whatever the order."""

Condition = Callable[[tuple[Any, ...], dict[str, Any]], bool]

_TORCHS_OWN = MOVES | PINNED | EXACT | {"_to_copy"}


@dataclass(frozen=True)
class Exactness:
    """When the bits of torch's own op are the same everywhere.

    Args:
        floats: whether they are for floats.
        condition: tells for which arguments that holds; None if for all.
        integers: whether they are when everything is an integer or a bool.
    """

    floats: bool
    condition: Condition | None
    integers: bool


def base_name(op: Any) -> str:
    """Return the name that an op, its in-place op and its ops with `out` share: `mul` for `aten::mul_`."""
    return base_of(name_of(op))


def base_of(name: str) -> str:
    """Return the same by the whole name of an op: `add` for `aten::add_.Tensor`."""
    base = name.partition("::")[2].partition(".")[0]
    in_place = base.endswith("_") and not base.endswith("__")
    return base[:-1] if in_place else base


def _overload_of(name: str) -> str:
    """Return which overload it is of that base name: `round.decimals` for `aten::round_.decimals`."""
    return f"{base_of(name)}.{name.partition('.')[2].removesuffix('_out')}"


def exactness_of(op: Any) -> Exactness:
    """Return what is known about an op of torch.

    Args:
        op: an `OpOverload` of the namespace `aten`.
    """
    return _exactness_of(name_of(op))


def _exactness_of(name: str) -> Exactness:
    base, overload = base_of(name), _overload_of(name)
    if overload in _OTHER_OVERLOADS:
        return Exactness(False, None, overload in _INTEGER_OVERLOADS)
    return Exactness(base in _TORCHS_OWN, _CONDITIONS.get(base), base in INTEGERS)


def moves_complex(op: Any) -> bool:
    """Tell whether the bits of torch's own op are the same everywhere for complex numbers.

    Args:
        op: an `OpOverload` of the namespace `aten`.
    """
    return base_name(op) in COMPLEX and _overload_of(name_of(op)) not in _OTHER_OVERLOADS


def _plain_alpha(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:  # noqa: ARG001
    return not kwargs or bool(kwargs.get("alpha", 1) == 1)


def _rsub(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool((args[2] if len(args) > 2 else kwargs.get("alpha", 1)) == 1)


def is_no_rounding_copy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether a call of `aten::copy_` or its like writes no floats to whole numbers.

    Args:
        args: its arguments.
        kwargs: those by name.
    """
    source = args[1] if len(args) > 1 else kwargs["src"]
    return not _is_float(source) or not _is_integral(args[0].dtype)


def _no_rounding_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    dtype = kwargs.get("dtype")
    return dtype is None or not _is_integral(dtype) or not _is_float(args[0])


def _full_precision(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return not any(getattr(each, "dtype", None) in LOW_PRECISION for each in (*args, *kwargs.values()))


def _is_float(value: Any) -> bool:
    """Tell whether it is a tensor of floats, or a number that stands for one."""
    return value.dtype.is_floating_point if isinstance(value, torch.Tensor) else isinstance(value, float)


def _is_integral(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool


_CONDITIONS: dict[str, Condition] = {
    "add": _plain_alpha,
    "sub": _plain_alpha,
    "rsub": _rsub,
    "copy": is_no_rounding_copy,
    "_to_copy": _no_rounding_to,
    "complex": _full_precision,
    "view_as_complex": _full_precision,
}

# Overloads that compute more than the others of their name.
_INTEGER_OVERLOADS = frozenset({"scatter.reduce", "scatter.value_reduce"})
_OTHER_OVERLOADS = _INTEGER_OVERLOADS | {"round.decimals", "view.dtype", "view_copy.dtype"}


_COMPUTE_COMPLEX = _names("abs allclose div floor_divide mul nan_to_num reciprocal sgn")
"""Exact ops that are not for complex numbers."""
_CALL_OTHERS = _names("isin")
"""Exact ops that call ops which are not."""
_HANDLED = _names("_linalg_check_errors im2col unique_consecutive")
"""Exact ops that have handlers all the same: for errors, for float16, for NaNs."""
_OF_SPARSE = SPARSE - _names("detach t transpose") | _names("_to_sparse _to_sparse_csc _to_sparse_csr neg")
"""Exact ops for which sparse tensors have handlers, or which torch does not make of others for them."""
_ASKED = _COMPUTE_COMPLEX | _CALL_OTHERS | _HANDLED | _OF_SPARSE


def passing_ops() -> frozenset[str]:
    """Return the ops that torch's dispatcher may run without asking portable mode, such as `aten::view`.

    An op of `prims` calls ops of aten, for tensors with contents.
    """
    return frozenset(name for name in op_names() if _passes(name))


def _passes(name: str) -> bool:
    if not name.startswith("aten::"):
        return name.startswith("prims::")
    exactness = _exactness_of(name)
    return exactness.floats and exactness.condition is None and base_of(name) not in _ASKED
