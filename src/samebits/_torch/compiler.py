"""The compiler of torch: code that it leaves alone, and modules that it makes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that `torch.compile` leaves alone, with all that it calls.

    While the compiler is not loaded, which takes a second, the function is returned as it is.
    """
    if "torch._dynamo" not in sys.modules:
        return function
    import torch

    disable: Any = torch.compiler.disable
    hidden: Callable[..., Any] = disable(function)
    return hidden


def is_within_compiler(module: Any, caller: str) -> bool:
    """Tell whether the code of `torch.compile` calls a module: one that it compiled, or a graph it made.

    Args:
        module: the module.
        caller: name of the Python module whose code calls it.
    """
    is_graph = type(module).__module__.startswith("torch.fx.")
    return caller.startswith("torch._dynamo") or (is_graph and caller.startswith(("torch._", "torch.fx")))


def original_of(module: Any) -> Any:
    """Return the script's own module for what `torch.compile` made of it; any other module as it is."""
    is_compiled = type(module).__module__ == "torch._dynamo.eval_frame"  # its `OptimizedModule`
    return getattr(module, "_orig_mod", module) if is_compiled else module
