"""The digest, tried out on values whose digests are known. Importing this imports torch."""

from __future__ import annotations

import torch

from samebits.digest import backend_name, digest

# From tests/unit/digest/test_golden.py: the same on every machine and with every back end.
_KNOWN = {
    "ones(3)": "60920883552aaa224ce28278b7fcc50a",
    "1025 bytes": "a019e9ca7cafb856176db35b26906318",
    "a strided view": "afde54aa56e471564a099af3810a9a5c",
    "1000 blocks": "ec8700811ef67adb79bb77a3d9663217",
}


def backend() -> str:
    """Return the back end in use, such as `avx2`, or `torch`."""
    return backend_name()


def failure() -> str:
    """Name the values with a wrong digest; empty when all are right."""
    values = {
        "ones(3)": torch.ones(3),
        "1025 bytes": torch.arange(1025).to(torch.uint8),
        "a strided view": _grid(33, 65).t(),
        "1000 blocks": _grid(256_000),
    }
    wrong = [name for name, value in values.items() if str(digest(value)) != _KNOWN[name]]
    return f"wrong digest of {', '.join(wrong)}" if wrong else ""


def _grid(*sizes: int) -> torch.Tensor:
    count = torch.Size(sizes).numel()
    return ((torch.arange(count) % 31 - 15) / 4).view(sizes)
