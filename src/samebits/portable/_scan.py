"""The arguments of an op: tensors of the devices that have kernels, or something without portable values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.digest.native import open_scanner
from samebits.portable._devices import device_types
from samebits.portable._tensors import LOW_PRECISION

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

FLOATS = 1
LOW = 2
VIRTUAL = 4
COMPLEX = 8
"""Bits that `scan` returns: floats among the tensors, float16 or bfloat16 there, tensors without contents,
complex numbers."""

_INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
_BITS: dict[torch.dtype, int] = {
    torch.float32: FLOATS,
    torch.float64: FLOATS,
    **dict.fromkeys(LOW_PRECISION, FLOATS | LOW),
    torch.complex64: FLOATS | COMPLEX,
    torch.complex128: FLOATS | COMPLEX,
    **{getattr(torch, name): 0 for name in _INTEGERS if hasattr(torch, name)},
}
_TENSOR, _PARAMETER, _STRIDED = torch.Tensor, torch.nn.Parameter, torch.strided
_SPARSE = frozenset({torch.sparse_coo, torch.sparse_csr, torch.sparse_csc})
_OF_ANY_VALUE = frozenset({float, complex, torch.Generator})
_NOT_PLAIN = -1


def _quick() -> tuple[Callable[[Sequence[Any]], int], Callable[[Sequence[Any]], bytes | None]]:
    scanner = open_scanner()
    if scanner is None:
        return lambda _: _NOT_PLAIN, lambda _: None
    return scanner.scan, scanner.signature


quick_scan, quick_signature = _quick()
"""In C, and sooner: what `scan` returns, or a negative number where only `scan` can tell; what has the use of
`signature` for a list or tuple, or None where only `signature` can tell. Neither raises an exception."""


class UnfitError(Exception):
    """An argument that portable mode has no values for; the message says what it is."""


class SparseError(Exception):
    """A sparse tensor is among the arguments, or is to be made: `_sparse.sparse_plan` runs the op."""


class FakeTensorError(Exception):
    """A tensor of torch's tracers, without contents, is among the arguments: torch runs the op."""


class ComplexError(Exception):
    """A complex number is among the arguments, or is to be made: `_complex.complex_plan` runs the op."""


class ZeroTensorError(Exception):
    """A tensor without memory, which stands for zeros, is among the arguments: `with_zeros` gives it some.

    Second derivatives return such tensors. In a dispatch mode, torch's own operations read their memory all
    the same (`aten/src/ATen/ZeroTensorFallback.cpp` is passed by then; torch 2.13.0 ends by SIGSEGV).
    """


def scan(values: Iterable[Any]) -> int:
    """Return what is among these arguments and lists: `FLOATS`, `LOW`, `VIRTUAL`, `COMPLEX`, or-ed.

    Raises:
        UnfitError: for a quantized, nested or complex32 tensor, and for one on a device without kernels.
        SparseError: for a COO, CSR or CSC tensor.
        ZeroTensorError: for one without memory that stands for zeros.
    """
    bits = 0
    for value in values:
        kind = type(value)
        if kind is _TENSOR or kind is _PARAMETER:
            try:
                bits |= _BITS[value.dtype]
            except KeyError:
                raise UnfitError(_unfit(value)) from None
            if not value.is_cpu or value.layout is not _STRIDED or value.is_nested:
                bits |= _unusual(value)
            elif value._is_zerotensor():
                raise ZeroTensorError
        elif kind is list or kind is tuple:
            if value and type(value[0]) is not int:
                bits |= scan(value)
        elif isinstance(value, _TENSOR):
            bits |= _BITS.get(value.dtype, 0) | _unusual(value)
        elif kind is complex:
            bits |= FLOATS | COMPLEX
    return bits


def has_complex(values: Iterable[Any]) -> bool:
    """Tell whether complex numbers are among these arguments and lists, as tensors, numbers or dtypes."""
    for value in values:
        if isinstance(value, list | tuple):
            if has_complex(value):
                return True
        elif isinstance(value, torch.dtype | _TENSOR):
            if value.is_complex if isinstance(value, torch.dtype) else value.is_complex():
                return True
        elif isinstance(value, complex):
            return True
    return False


def first_off_cpu(values: Iterable[Any]) -> torch.Tensor | None:
    """Return the first tensor among these arguments and lists that is not in CPU memory.

    Args:
        values: the arguments of an op.
    """
    for value in values:
        tensor = value if isinstance(value, _TENSOR) and not value.is_cpu else None
        if isinstance(value, list | tuple):
            tensor = first_off_cpu(value)
        if tensor is not None:
            return tensor
    return None


def signature(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return all that `scan` and torch's checks can depend on: everything but floats and contents of tensors.

    Args:
        values: the arguments of an op.

    Raises:
        ZeroTensorError: for a tensor without memory that stands for zeros.
        FakeTensorError: for a fake one, whose sizes may be symbols.
    """
    parts: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is _TENSOR or kind is _PARAMETER:
            if value.is_cpu and value.layout is _STRIDED and not value.is_nested:
                if value._is_zerotensor():
                    raise ZeroTensorError
                parts += (value.shape, value.dtype)
            else:
                parts.append(_unusual_signature(value))
        elif kind is list or kind is tuple:
            parts.append(signature(value))
        elif isinstance(value, _TENSOR):
            parts.append(_unusual_signature(value))
        else:
            parts.append(kind if kind in _OF_ANY_VALUE else value)
    return tuple(parts)


def with_zeros(value: Any) -> Any:
    """Return an argument, or a list of them, in which tensors that stand for zeros have memory."""
    if isinstance(value, _TENSOR):
        if not value._is_zerotensor():
            return value
        return torch.zeros(value.shape, dtype=value.dtype, device=value.device)
    return type(value)(map(with_zeros, value)) if type(value) in (list, tuple) else value


def call_signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
    """Return the `signature` of all arguments of a call.

    Args:
        args: of an op.
        kwargs: those by name.
    """
    quick = quick_signature(args)
    like = signature(args) if quick is None else quick
    return (like, *kwargs, *signature(kwargs.values())) if kwargs else like


def _unusual_signature(tensor: torch.Tensor) -> tuple[Any, ...]:
    if _is_fake(tensor):
        raise FakeTensorError
    if tensor.layout is _STRIDED and tensor._is_zerotensor():
        raise ZeroTensorError
    shape = None if tensor.is_nested else tensor.shape  # nested ones have none
    return type(tensor), tensor.device, tensor.layout, tensor.dtype, shape


def scan_named(arguments: Mapping[str, Any]) -> int:
    """Return what `scan` does for keyword arguments, which include dtype, layout and device of results."""
    bits = scan(arguments.values())
    dtype = arguments.get("dtype")
    if dtype is not None:
        if dtype not in _BITS:
            raise UnfitError(f"dtype={dtype}")
        bits |= _BITS[dtype]
    if arguments.get("layout") in _SPARSE:
        raise SparseError
    if arguments.get("layout") not in {None, _STRIDED}:
        raise UnfitError(f"layout={arguments['layout']}")
    device = arguments.get("device")
    if device is not None and device.type not in device_types():
        if device.type != "meta":
            raise UnfitError(f"device={device}")
        bits |= VIRTUAL
    return bits


def _unusual(tensor: torch.Tensor) -> int:
    """Return `VIRTUAL` for tensors without contents, such as those on the meta device, else 0."""
    if tensor.layout in _SPARSE and tensor.device.type in device_types() and tensor.dtype in _BITS:
        raise SparseError
    if tensor.layout is not _STRIDED or tensor.is_nested or tensor.dtype not in _BITS:
        raise UnfitError(_unfit(tensor))
    if tensor.is_meta or _is_fake(tensor):
        return VIRTUAL
    if tensor.device.type not in device_types():
        raise UnfitError(_unfit(tensor))
    if tensor._is_zerotensor():
        raise ZeroTensorError
    return 0


def _is_fake(tensor: torch.Tensor) -> bool:
    return type(tensor).__name__ in {"FakeTensor", "FunctionalTensor"}


def _unfit(tensor: torch.Tensor) -> str:
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.layout is not _STRIDED:
        return f"a tensor of layout {tensor.layout}"
    if tensor.is_quantized:
        return f"a quantized tensor ({tensor.dtype})"
    if tensor.dtype not in _BITS:
        return f"a tensor of dtype {tensor.dtype}"
    return f"a tensor on {tensor.device}"
