"""Checks that handlers of ops make on their inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import torch

from samebits.errors import SamebitsError
from samebits.portable._refusals import script_line

if TYPE_CHECKING:
    from torch import Tensor

REAL = frozenset({torch.float32, torch.float64})


def is_real(tensor: Tensor, op: str) -> bool:
    """Tell whether it is float32 or float64; False for integers and booleans.

    Raises:
        SamebitsError: for complex and quantized tensors.
    """
    if tensor.dtype in REAL:
        return True
    if tensor.dtype.is_complex or tensor.is_quantized or tensor.dtype.is_floating_point:
        refuse(op, f"of {tensor.dtype} tensors")
    return False


def refuse(op: str, what: str) -> NoReturn:
    """Refuse a use of an op that has no portable kernel.

    Args:
        op: name of the op.
        what: the use, such as `of complex64 tensors`.
    """
    raise SamebitsError(
        f"aten::{op}{script_line()} {what} has no portable kernel: use another op there, "
        "or run without portable mode",
        slug="portable-op",
    )
