"""The digest of a tensor: 128 bits that tell its exact bits, shape and dtype (docs/reference/digest.md).

The package can be called: `samebits.digest(model.state_dict())` is `samebits.digest.digest(…)`.
Importing it does not import torch; its names do, when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._runtime.lazy import late_dir, late_names, make_callable

if TYPE_CHECKING:
    from samebits.digest._cuda_backend import without_kernels
    from samebits.digest.tensors import (
        DigestPlan,
        backend_name,
        digest_bytes,
        digest_many,
        digest_memory,
        observe,
        observe_later,
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
    "observe_later",
    "storage_addresses",
    "without_kernels",
]

_HOMES = {
    "Digest": "values",
    "DigestPlan": "tensors",
    "backend_name": "tensors",
    "digest": "values",
    "digest_bytes": "tensors",
    "digest_many": "tensors",
    "digest_memory": "tensors",
    "observe": "tensors",
    "observe_later": "tensors",
    "storage_addresses": "tensors",
    "without_kernels": "_cuda_backend",
}

__getattr__ = late_names(__name__, _HOMES)
__dir__ = late_dir(_HOMES)
make_callable(__name__, "digest")  # `samebits.digest` is both this package and the function of that name
