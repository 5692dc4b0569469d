"""Tensors in a checkpoint: what is beside their contents, and which cannot be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.checkpoint.entries import NAMES, OTHERS, dtype_name
from samebits.checkpoint.refusals import describe, unsaveable

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_BY_ROW = {torch.sparse_csr: "sparse_csr", torch.sparse_bsr: "sparse_bsr"}
_BY_COLUMN = {torch.sparse_csc: "sparse_csc", torch.sparse_bsc: "sparse_bsc"}
COMPRESSED = {name: layout for layout, name in (_BY_ROW | _BY_COLUMN).items()}


def check_tensor(tensor: torch.Tensor, where: str) -> None:
    """Refuse a strided tensor whose contents are not plain numbers in memory.

    Raises:
        SamebitsError: `checkpoint-entry`.
    """
    reason = ""
    if type(tensor) not in _PLAIN:
        reason = f"{describe(tensor)}; of a subclass save the plain tensors that it holds"
    elif tensor.is_meta:
        reason = "it is on the device `meta` and has no contents; give it some first"
    elif tensor.is_quantized:
        reason = "it is quantized; save `int_repr()`, the scale and the zero point"
    elif tensor.is_nested:
        reason = "it is a nested tensor; save the list that `unbind()` gives"
    elif dtype_name(tensor.dtype) not in NAMES and dtype_name(tensor.dtype) not in OTHERS:
        reason = f"its dtype is {tensor.dtype}; view it as another one"
    elif tensor.numel() and not tensor.untyped_storage().nbytes():
        reason = "its storage was freed; gather it first"
    if reason:
        raise unsaveable(where, reason)


def sparse_parts(tensor: torch.Tensor, where: str) -> tuple[str, list[tuple[str, torch.Tensor]]]:
    """Layout and the dense tensors that make up a sparse one.

    Raises:
        SamebitsError: it is not coalesced, or of an opaque layout; `checkpoint-entry`.
    """
    if type(tensor) not in _PLAIN or tensor.is_meta:
        raise unsaveable(where, describe(tensor))
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        if not tensor.is_coalesced():
            raise unsaveable(where, "it is sparse and not coalesced; save `coalesce()` of it")
        return "sparse_coo", [("indices", tensor.indices()), ("values", tensor.values())]
    if tensor.layout in _BY_ROW:
        parts = [("crow_indices", tensor.crow_indices()), ("col_indices", tensor.col_indices())]
        return _BY_ROW[tensor.layout], [*parts, ("values", tensor.values())]
    if tensor.layout in _BY_COLUMN:
        parts = [("ccol_indices", tensor.ccol_indices()), ("row_indices", tensor.row_indices())]
        return _BY_COLUMN[tensor.layout], [*parts, ("values", tensor.values())]
    raise unsaveable(where, f"its layout is {tensor.layout}; save `to_dense()` of it")


def sparse_tensor(layout: str, shape: Sequence[int], parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sparse tensor that `sparse_parts` took apart.

    Raises:
        ValueError: that is none.
    """
    try:
        first, second = parts[0], parts[1]
        device = first.device
        if layout == "sparse_coo":
            return torch.sparse_coo_tensor(
                first, second, tuple(shape), device=device, is_coalesced=True, check_invariants=True
            )
        return torch.sparse_compressed_tensor(
            first,
            second,
            parts[2],
            tuple(shape),
            layout=COMPRESSED[layout],
            device=device,
            check_invariants=True,
        )
    except (RuntimeError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"a sparse tensor that torch refuses: {error}") from error


def tensor_facts(tensor: torch.Tensor) -> dict[str, Any]:
    """What a tensor is beside its contents and name, defaults left out."""
    facts: dict[str, Any] = {}
    name = dtype_name(tensor.dtype)
    if name not in NAMES:
        facts |= {"dtype": name, "shape": list(tensor.shape)}
    if tensor.device.type != "cpu":
        facts["device"] = str(tensor.device)
    if not tensor.is_contiguous() and is_dense(tensor):
        facts["strides"] = list(tensor.stride())
    return facts


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements lie next to each other in some order of the dimensions, without overlap."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def with_strides(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The same values laid out in memory by those strides.

    Raises:
        ValueError: they are not the strides of such a tensor.
    """
    sizes = zip(strides, tensor.shape, strict=False)
    expected = 1
    for stride, size in sorted(sizes):
        if size != 1 and stride != expected:
            raise ValueError(f"strides {list(strides)} do not fit the shape {list(tensor.shape)}")
        expected *= size
    if len(strides) != tensor.dim() or expected != tensor.numel():
        raise ValueError(f"strides {list(strides)} do not fit the shape {list(tensor.shape)}")
    laid_out = torch.empty_strided(
        tuple(tensor.shape), tuple(strides), dtype=tensor.dtype, device=tensor.device
    )
    return laid_out.copy_(tensor)
