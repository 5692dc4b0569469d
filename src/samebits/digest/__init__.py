"""The digest of a tensor: 128 bits that tell its exact bits, shape and dtype (docs/digest.md).

The package can be called: `samebits.digest(model.state_dict())` is `samebits.digest.digest(…)`.
Importing it does not import torch; its names do, when they are first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samebits.digest.plan import DigestPlan
    from samebits.digest.tensors import (
        backend_name,
        digest_bytes,
        digest_many,
        digest_memory,
        observe,
        storage_addresses,
    )
    from samebits.digest.values import Digest, digest

__all__ = [
    "Digest",
    "DigestPlan",
    "backend_name",
    "digest",
    "digest_bytes",
    "digest_many",
    "digest_memory",
    "observe",
    "storage_addresses",
]

_HOMES = {
    "Digest": "values",
    "DigestPlan": "plan",
    "backend_name": "tensors",
    "digest": "values",
    "digest_bytes": "tensors",
    "digest_many": "tensors",
    "digest_memory": "tensors",
    "observe": "tensors",
    "storage_addresses": "tensors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # the next look-up finds it without this function
    return value


class _CallablePackage(ModuleType):
    """`samebits.digest` is both this package and the function of that name."""

    def __call__(self, obj: Any) -> Digest:
        """The digest of a value: see `samebits.digest.values.digest`."""
        digest_value: Digest = self.digest(obj)
        return digest_value


sys.modules[__name__].__class__ = _CallablePackage
