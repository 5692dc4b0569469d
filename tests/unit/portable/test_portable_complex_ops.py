"""Complex numbers and Fourier transforms in portable mode against plain torch, over torch's own samples."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op

COMPLEX = (torch.complex64, torch.complex128)
FLOATS = (torch.float32, torch.float64)
ARITHMETIC = [
    *("abs", "add", "addcmul", "addmm", "addmv", "addr", "allclose", "angle", "baddbmm", "bmm", "conj"),
    *("conj_physical", "cumsum", "div", "dot", "einsum", "exp", "inner", "isclose", "kron", "matmul", "mean"),
    *("mm", "mul", "mv", "neg", "nn.functional.linear", "outer", "reciprocal", "resolve_conj", "rsub", "sgn"),
    *("square", "sub", "sum", "tensordot", "true_divide", "vdot", "linalg.vecdot", "linalg.multi_dot"),
    *("linalg.vector_norm", "trace", "nn.functional.conv1d", "nn.functional.conv2d", "diff"),
]
MOVES = [
    *("cat", "chunk", "clone", "diagonal", "eq", "expand", "fill", "flip", "full_like", "gather", "imag"),
    *("index_add", "index_copy", "index_put", "index_select", "isfinite", "isinf", "isnan", "masked_fill"),
    *("movedim", "ne", "permute", "put", "real", "repeat", "reshape", "roll", "scatter_add", "select"),
    *("slice", "split", "stack", "take", "to", "transpose", "tril", "unbind", "unfold", "view_as_real"),
    *("where", "zeros_like", "logical_not", "logical_and", "float", "double", "cfloat", "cdouble", "long"),
    "bool",
]
OF_COMPLEX = [
    *("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn"),
    *("fftshift", "ifftshift"),
]
OF_REALS = [*OF_COMPLEX, "rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn"]


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_agrees_with_torch(name: str, dtype: torch.dtype) -> None:
    """Forward and backward."""
    variant = "no_rounding_mode" if name == "div" else ""
    assert check_op(name, dtype, variant=variant, limit=12)


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_agrees_with_torch(name: str) -> None:
    assert check_op(name, torch.complex64, limit=8)


@pytest.mark.parametrize("variant", ["constant", "reflect", "replicate", "circular"])
def test_padding_agrees_with_torch(variant: str) -> None:
    assert check_op("nn.functional.pad", torch.complex64, variant=variant, limit=8)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["complex", "polar", "view_as_complex"])
def test_what_makes_complex_numbers_agrees_with_torch(name: str, dtype: torch.dtype) -> None:
    assert check_op(name, dtype, limit=12)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_transforms_of_complex_numbers_agree_with_torch(name: str, dtype: torch.dtype) -> None:
    assert check_op(f"fft.{name}", dtype, limit=20)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_REALS)
def test_transforms_of_reals_agree_with_torch(name: str, dtype: torch.dtype) -> None:
    assert check_op(f"fft.{name}", dtype, limit=20)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_transforms_of_short_times_agree_with_torch(dtype: torch.dtype) -> None:
    assert check_op("stft", dtype)
    if dtype.is_complex:
        assert check_op("istft", dtype)
