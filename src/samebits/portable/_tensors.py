"""The dtypes that kernels compute in, and conversions of tensors to them and to arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from samebits.portable._refusals import refuse_use

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array

REAL = frozenset({torch.float32, torch.float64})
"""The dtypes that kernels compute in."""

LOW_PRECISION = frozenset({torch.float16, torch.bfloat16})
"""The dtypes that are computed in float32 and rounded once."""

_CPU = torch.device("cpu")


def is_real(tensor: torch.Tensor, op: str) -> bool:
    """Tell whether it is float32 or float64; False for integers and booleans.

    Raises:
        SamebitsError: for complex and quantized tensors.
    """
    if tensor.dtype in REAL:
        return True
    if tensor.dtype.is_complex or tensor.is_quantized or tensor.dtype.is_floating_point:
        raise refuse_use(op, f"of {tensor.dtype} tensors")
    return False


def raised(tensor: torch.Tensor) -> torch.Tensor:
    """Return a float16 or bfloat16 tensor in float32, any other as it is."""
    return tensor.to(torch.float32) if tensor.dtype in LOW_PRECISION else tensor


def as_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return `tensor.to(dtype)`, which takes a microsecond even where there is nothing to do."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def as_array(tensor: torch.Tensor) -> Array:
    """Return the contents of a CPU tensor as an array that shares its memory."""
    array: Array = tensor.detach().numpy()
    return array


def as_tensor(value: Any) -> torch.Tensor:
    """Return an array, or a NumPy number that stands for one without dimensions, as a CPU tensor."""
    return torch.from_numpy(np.asarray(value))


def device_of(*operands: Any) -> torch.device:
    """Return the device that an op computes on: numbers and CPU tensors without dimensions go to the others.

    Args:
        operands: tensors and numbers.
    """
    for each in operands:
        if isinstance(each, torch.Tensor) and not each.is_cpu:
            return each.device
    return _CPU
