"""Names of the ops of torch that give the same bits everywhere as they are.

A name stands for the op, all its overloads, its in-place op (`mul_`) and its ops with `out`. The proof is
tests/integration/test_portable_exact.py, which runs every one of them under each instruction set of torch.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = _names(
    """
    _fw_primal _lazy_clone _make_dual _neg_view _reshape_alias _unpack_dual _unsafe_view alias as_strided
    chunk detach diagonal expand expand_as flatten movedim narrow permute positive reshape resolve_conj
    resolve_neg select slice split split_with_sizes squeeze swapaxes t transpose unbind unfold
    unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view view_as
    """
)
"""Ops that give another view of the same memory."""

COPIES = _names(
    """
    _chunk_cat _copy_from _pad_circular _reshape_copy _unsafe_index _unsafe_masked_index alias_copy
    as_strided_copy as_strided_scatter block_diag broadcast_tensors cat channel_shuffle clone concat
    constant_pad_nd contiguous copy detach_copy diag diag_embed diagonal_backward diagonal_copy
    diagonal_scatter embedding expand_copy fill fill_diagonal_ flip gather im2col index index_fill
    index_select lift lift_fresh lift_fresh_copy masked_fill masked_scatter masked_scatter_backward
    masked_select max_unpool2d max_unpool3d narrow_copy native_channel_shuffle permute_copy pixel_shuffle
    pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave
    replication_pad1d replication_pad2d replication_pad3d resize resize_as roll rot90 scatter
    select_backward select_copy select_scatter set slice_backward slice_copy slice_scatter split_copy
    split_with_sizes_copy squeeze_copy stack t_copy take transpose_copy tril triu unbind_copy unfold_copy
    unsqueeze_copy view_copy where zero
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

QUERIES = _names(
    """
    _assert_async _assert_scalar _assert_tensor_metadata _debug_has_internal_overlap
    _functional_assert_async _functional_assert_scalar _functional_sym_constrain_range
    _has_same_storage_numel _is_all_true _is_any_true _is_zerotensor _local_scalar_dense
    _nested_tensor_size _pin_memory _shape_as_tensor all any argwhere count_nonzero dense_dim equal
    is_nonzero is_pinned is_same_size is_set_to item nonzero nonzero_static numel pin_memory record_stream
    size stride sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size
    sym_storage_offset sym_stride
    """
)
"""Ops that answer with integers, bools or a copy."""

COMPARISONS = _names(
    """
    bucketize eq ge greater greater_equal gt isfinite isin isinf isnan isneginf isposinf le less
    less_equal logical_and logical_not logical_or logical_xor lt ne not_equal searchsorted
    """
)
"""Ops that compare."""

SINGLE = _names(
    """
    _foreach_abs _foreach_add _foreach_ceil _foreach_clone _foreach_copy _foreach_div _foreach_floor
    _foreach_frac _foreach_mul _foreach_neg _foreach_reciprocal _foreach_round _foreach_sign _foreach_sqrt
    _foreach_sub _foreach_trunc _foreach_zero _prelu_kernel _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d abs absolute adaptive_max_pool2d
    adaptive_max_pool3d add ceil div divide floor floor_divide fmod frac hardtanh_backward heaviside
    leaky_relu leaky_relu_backward max_pool2d_with_indices max_pool3d_with_indices mul multiply nan_to_num
    neg negative nextafter reciprocal remainder round rsub sgn sign sqrt sub subtract threshold
    threshold_backward true_divide trunc upsample_nearest1d upsample_nearest2d upsample_nearest3d
    """
)
"""Ops whose every float output is one IEEE operation, a choice, or a short fixed sequence of these."""

INTEGERS = _names(
    """
    __and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rshift__ __xor__
    _foreach_add _foreach_clamp_max _foreach_clamp_min _foreach_maximum _foreach_minimum _foreach_mul
    _foreach_sub _index_put_impl _unique _unique2 _unsafe_index_put _unsafe_masked_index_put_accumulate
    add addbmm addcmul addmm addmv amax amin aminmax arange baddbmm bincount bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm clamp clamp_max
    clamp_min clip cross cumprod cumsum diff dot fmax fmin gcd hardtanh index_add index_copy index_put
    index_reduce lcm maximum minimum mm msort mv one_hot pow prod put range relu relu6 rsub scatter_add
    scatter_reduce signbit sub sum trace unique_consecutive unique_dim unique_dim_consecutive
    """
)
"""Ops that are exact when all that goes in and out is an integer or a bool, whatever the order."""

CHOICES = _names(
    """
    _foreach_clamp_max _foreach_clamp_min _foreach_maximum _foreach_minimum clamp clamp_max clamp_min
    clip fmax fmin hardtanh maximum minimum relu relu6
    """
)
"""Ops that choose one of their inputs, and are exact but for a zero's sign (NEON and AVX differ there)."""
