"""Convolution handlers against plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from opinfo import check_op

from samebits.portable.dispatch import PortableMode

NAMES = [
    *(f"nn.functional.conv{n}d" for n in (1, 2, 3)),
    *(f"nn.functional.conv_transpose{n}d" for n in (1, 2, 3)),
    "nn.functional.unfold",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_torchs_own_samples_agree(name: str, dtype: torch.dtype) -> None:
    assert check_op(name, dtype) > 0
