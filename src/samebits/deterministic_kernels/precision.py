"""The dtypes in which sums and products are computed."""

from __future__ import annotations

import torch


def exact_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return float32 for float16 and bfloat16, which are rounded once at the end; any other as it is."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
