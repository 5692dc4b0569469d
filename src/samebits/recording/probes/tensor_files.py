"""Tensors whole, as safetensors files."""

from __future__ import annotations

from typing import Any


def to_file(tensor: Any) -> bytes | None:
    """A tensor as a safetensors file; None for one that the format cannot hold (sparse, quantized).

    Complex tensors are kept as pairs.
    """
    from safetensors.torch import save
    from torch import view_as_real

    plain = tensor.detach()
    if str(plain.layout) != "torch.strided" or plain.is_quantized:
        return None
    if plain.is_complex():
        plain = view_as_real(plain.resolve_conj())
    try:
        return save({"value": plain.resolve_neg().cpu().contiguous()})
    except KeyError:  # the format does not have every dtype
        return None


def from_file(data: bytes) -> Any:
    """The tensor that `to_file` kept; a complex one as pairs."""
    from safetensors.torch import load

    return load(data)["value"]


def fits(tensor: Any, kept: Any) -> bool:
    """Whether a kept tensor has the dtype and shape of another."""
    if tensor.is_complex():
        return bool(kept.shape == (*tensor.shape, 2) and kept.dtype == tensor.real.dtype)
    return bool(kept.shape == tensor.shape and kept.dtype == tensor.dtype)


def put(tensor: Any, kept: Any) -> None:
    """Write kept contents to a tensor's own memory.

    By way of `data`, which has a version counter of its own: a backward pass that saved the tensor does not
    take it for modified.
    """
    from torch import view_as_complex

    tensor.data.copy_(view_as_complex(kept) if tensor.is_complex() else kept)
