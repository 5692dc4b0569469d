"""Where C code finds the tensor in its Python object, and the functions of torch that it calls.

The functions are torch's C interface (torch/csrc/inductor/aoti_torch/c/shim.h), which keeps its form between
releases. Two things are not part of it: the place of the tensor in its object, which `tensor_offset` looks
for, and the function that makes an object for a tensor, by its name in C++. Where either is missing,
`functions` or `tensor_offset` returns None, and the ops are computed by Python.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import torch

_WRAP = "_Z16THPVariable_WrapRKN2at10TensorBaseE"
_THREADS = "_ZN2at15get_num_threadsEv"
_INTERFACE = {
    "get_data_ptr": "aoti_torch_get_data_ptr",
    "get_dim": "aoti_torch_get_dim",
    "get_sizes": "aoti_torch_get_sizes",
    "get_strides": "aoti_torch_get_strides",
    "get_dtype": "aoti_torch_get_dtype",
    "get_device_type": "aoti_torch_get_device_type",
    "get_layout": "aoti_torch_get_layout",
    "empty_strided": "aoti_torch_empty_strided",
    "delete_tensor": "aoti_torch_delete_tensor_object",
    "get_threads": _THREADS,
}
_HEADS = (16, 24)
"""Where the pointer to the tensor may be: after the head of the object, or after a flag there (until 2.9)."""


def library(name: str) -> ctypes.CDLL | None:
    """Return one of torch's libraries, None where it is not found.

    Args:
        name: without its beginning and ending: `torch_cpu`.
    """
    found = sorted((Path(torch.__file__).parent / "lib").glob(f"lib{name}.*"))
    try:
        return ctypes.CDLL(str(found[0])) if found else None
    except OSError:
        return None


@functools.cache
def functions() -> dict[str, int] | None:
    """Return the addresses of torch's functions by the names that samebits._ops has for them."""
    cpu, python = library("torch_cpu"), library("torch_python")
    if cpu is None or python is None:
        return None
    try:
        found = {name: address_of(getattr(cpu, function)) for name, function in _INTERFACE.items()}
        return found | {"wrap": address_of(getattr(python, _WRAP))}
    except AttributeError:
        return None


def numbers() -> tuple[int, int, int]:
    """Return torch's numbers of float32, float64 and the strided layout."""
    cpu: Any = library("torch_cpu")
    return (
        cpu.aoti_torch_dtype_float32(),
        cpu.aoti_torch_dtype_float64(),
        cpu.aoti_torch_layout_strided(),
    )


@functools.cache
def tensor_offset() -> int | None:
    """Return how far into its Python object a tensor is, None where it is in no known place."""
    some = [torch.empty(1), torch.nn.Parameter(torch.empty(2)), torch.ones(3)[1:]]
    for offset in _HEADS:
        if all(_word(id(each) + offset) == each._cdata for each in some):
            return offset
    return None


def address_of(function: Any) -> int:
    """Return the address of a function of a library."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
