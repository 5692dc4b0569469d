"""What reaches the memory of tensors beside the ops that are seen.

A name that is missing in a release of torch is not watched there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_POINTER_METHODS = (
    "data_ptr", "const_data_ptr", "untyped_storage", "__dlpack__",
    "apply_", "map_", "map2_",  # write from Python, and no op or version tells of it
)  # fmt: skip
_POINTER_FUNCTIONS = ("_to_dlpack", "_to_dlpack_versioned", "_data_address", "_storage_address")


def pointer_functions(torch: Any) -> list[tuple[Any, str]]:
    """Return the functions that give the memory of their first argument to code that torch does not see.

    `numpy` is not among them: a storage says itself that NumPy has its address.
    """
    named = [(torch.Tensor, name) for name in _POINTER_METHODS]
    named += [(torch._C, name) for name in _POINTER_FUNCTIONS]
    named += [(torch, "to_dlpack"), (torch.utils.dlpack, "to_dlpack")]
    return [(owner, name) for owner, name in named if hasattr(owner, name)]


COUNTERLESS = "data"
"""The attribute of tensors that gives and takes memory without its version counter."""


def foreign_modes() -> Callable[[], int]:
    """Return a function that counts the dispatch modes below the one that is being called.

    Without it there may always be one.
    """
    import torch

    function: Callable[[], int] | None = getattr(torch._C, "_len_torch_dispatch_stack", None)
    return function if function is not None else lambda: 1
