"""Conversions between tensors and the arrays that the reference works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from samebits.portable.reference.fma import Array


def as_array(tensor: torch.Tensor) -> Array:
    """Return the contents of a tensor as an array that shares its memory."""
    array: Array = tensor.detach().numpy()
    return array


def as_tensor(value: Any) -> torch.Tensor:
    """Return an array, or a number of NumPy's that stands for one without dimensions, as a tensor."""
    return torch.from_numpy(np.asarray(value))
