"""The parts of tensors that are not plain strided memory: subclasses, sparse, nested and quantized ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import torch

from samebits.digest import _definition as d
from samebits.errors import SamebitsError

_AS_SHOWN = (
    type(None), bool, int, complex, str, bytes,
    torch.dtype, torch.device, torch.layout, torch.memory_format,
)  # fmt: skip
_DEEPEST = 8
_NO_CONTEXT = "NoneType None"


def _context_of(tensor: Any) -> tuple[str, tuple[torch.Tensor, ...]]:
    """Return the context of a wrapper subclass as text, and the tensors in it.

    The same value gives the same text in every process. An object of a class that has no defined contents (a
    device mesh, a function) counts by the name of its class only. The context is read from the detached
    tensor, because whether a gradient is wanted is not part of a value.

    Args:
        tensor: has `__tensor_flatten__`.
    """
    tensors: list[torch.Tensor] = []
    return _text(_flattened(tensor)[1], tensors, 0), tuple(tensors)


def _flattened(tensor: Any) -> tuple[Any, Any]:
    if tensor.requires_grad:
        try:
            detached = tensor.detach()
        except (RuntimeError, NotImplementedError, TypeError):  # the subclass has no such op
            detached = tensor
        if hasattr(detached, "__tensor_flatten__"):
            tensor = detached
    names, context = tensor.__tensor_flatten__()
    return names, context


def _text(value: Any, tensors: list[torch.Tensor], depth: int) -> str:
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return f"tensor {len(tensors)}"
    if isinstance(value, _AS_SHOWN) and type(value).__repr__ is not object.__repr__:
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, float):
        return f"float {value.hex()}"
    if depth < _DEEPEST:
        inside = _container(value, tensors, depth + 1)
        if inside is not None:
            return f"{type(value).__name__} {inside}"
    return type(value).__qualname__


def _container(value: Any, tensors: list[torch.Tensor], depth: int) -> str | None:
    """Return the contents of a container as text; None for anything else."""
    if isinstance(value, Mapping):
        entries = [(_text(key, tensors, depth), _text(value[key], tensors, depth)) for key in value]
        return f"{sorted(entries)}"
    if isinstance(value, AbstractSet):
        return f"{sorted(_text(item, tensors, depth) for item in value)}"
    if isinstance(value, Sequence):
        return f"{[_text(item, tensors, depth) for item in value]}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        named = [(each.name, _text(getattr(value, each.name, None), tensors, depth)) for each in fields]
        return f"{named}"
    return None


_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_QUANTIZED_DTYPES = (torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4)
_COMPRESSED_BY_ROW = (torch.sparse_csr, torch.sparse_bsr)
_COMPRESSED_BY_COLUMN = (torch.sparse_csc, torch.sparse_bsc)


@dataclass(frozen=True)
class Parts:
    """The parts of a tensor.

    Args:
        tag: its kind, and all that the parts do not tell.
        tensors: in a fixed order.
    """

    tag: str
    tensors: tuple[torch.Tensor, ...]


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether it is a tensor of the commonest kind, whose memory can be read as it is."""
    try:
        return (
            type(tensor) in _PLAIN_TYPES
            and tensor.dtype not in _QUANTIZED_DTYPES
            and not tensor.is_nested
            and tensor.data_ptr() != 0
            and not tensor._is_zerotensor()
            and not is_captured(tensor)
        )
    except RuntimeError:  # sparse, nested, in a transform: it has no address
        return False


def is_captured(tensor: torch.Tensor) -> bool:
    """Return whether the running thread captures a graph of its device: nothing is computed then, or read."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def has_contents(tensor: torch.Tensor) -> bool:
    """Return False for meta and fake tensors, for those whose storage was freed, and in a captured graph."""
    if tensor.is_meta or hasattr(tensor, "fake_mode") or is_captured(tensor):
        return False
    if type(tensor) not in _PLAIN_TYPES or tensor.layout is not torch.strided or tensor.is_nested:
        return True
    return tensor.numel() == 0 or tensor.data_ptr() != 0 or tensor.untyped_storage().nbytes() != 0


def absent_digest(tensor: torch.Tensor) -> bytes:
    """Return the digest of a tensor without contents; a size that is a symbol counts as 2^64 - 1."""
    sizes = tuple(size if isinstance(size, int) else d.MASK for size in tensor.shape)
    return d.absent(dtype_name(tensor.dtype), sizes)


def dtype_name(dtype: torch.dtype) -> str:
    """Return a name such as `float32`."""
    return str(dtype).removeprefix("torch.")


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose memory can be read, with the same logical contents."""
    if tensor._is_zerotensor():  # as second derivatives and forward-mode differentiation make them
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return tensor.to_dense() if tensor.is_mkldnn else tensor


def parts_of(tensor: torch.Tensor) -> Parts | None:
    """Return the parts; None for a strided tensor that can be read as it is."""
    if getattr(tensor, "__tensor_flatten__", None) is not None:
        return _parts_of_subclass(tensor)
    if tensor.is_nested:
        return Parts(f"nested {dtype_name(tensor.dtype)}", tuple(tensor.unbind()))
    if tensor.is_quantized:
        return _quantized(tensor)
    if tensor.dtype in _QUANTIZED_DTYPES:
        raise SamebitsError(
            f"the contents of a plain tensor viewed as {dtype_name(tensor.dtype)} cannot be read: it has no "
            "scale and no zero point. Digest the integers before the view, or quantize the tensor.",
            slug="digest-unreadable",
        )
    components = _components(tensor)
    if components is None:
        return None
    kind = str(tensor.layout).removeprefix("torch.")
    if tensor.layout is torch.sparse_coo and not tensor.is_coalesced():
        kind += " uncoalesced"
    return Parts(f"{kind} {dtype_name(tensor.dtype)} {tuple(tensor.shape)}", components)


def _parts_of_subclass(tensor: Any) -> Parts:
    waiting = getattr(tensor, "trigger_wait", None)
    if waiting is not None:
        waiting()  # an AsyncCollectiveTensor: other ranks may still be writing to what it wraps
    attributes = [(name, getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0]]
    # Since torch 2.13 a DTensor also names its DeviceMesh, which is no tensor.
    inner = [(name, value) for name, value in attributes if isinstance(value, torch.Tensor)]
    text, more = _context_of(tensor)
    tag = f"subclass {type(tensor).__qualname__} {tuple(name for name, _ in inner)}"
    return Parts(tag if text == _NO_CONTEXT else f"{tag} {text}", (*(value for _, value in inner), *more))


def _components(tensor: torch.Tensor) -> tuple[torch.Tensor, ...] | None:
    """Return the tensors that make up a sparse tensor; None for any other."""
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in _COMPRESSED_BY_ROW:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in _COMPRESSED_BY_COLUMN:
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return None


def _quantized(tensor: torch.Tensor) -> Parts:
    scheme = str(tensor.qscheme()).removeprefix("torch.")
    if "channel" in scheme:
        parameters = (tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points())
        scheme += f" {tensor.q_per_channel_axis()}"
    else:
        parameters = (
            torch.tensor(tensor.q_scale(), dtype=torch.float64, device="cpu"),
            torch.tensor(tensor.q_zero_point(), dtype=torch.int64, device="cpu"),
        )
    return Parts(f"quantized {dtype_name(tensor.dtype)} {scheme}", (tensor.int_repr(), *parameters))
