"""What kernels need at the place where torch's dispatcher adds an op to the autograd graph."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from samebits._torch.kernel_overrides import Kernel


def kernel_of(function: Any) -> Kernel:
    """Return the kernel that applies a function of `one_level_function` to the arguments of its op.

    Args:
        function: takes them in their order, those by name last.
    """

    def run(_: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        with one_level():
            return function.apply(*args, *kwargs.values())

    return run


def without_tangents(kernel: Kernel) -> Kernel:
    """Return a kernel that leaves calls which torch follows in forward mode to torch's own."""

    def run(otherwise: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        if any(has_tangent(each) for each in args if isinstance(each, torch.Tensor)):
            return otherwise()
        return kernel(otherwise, *args, **kwargs)

    return run


def one_level_function() -> type[Any]:
    """Return the base class of autograd functions that run at one level of `torch.func` transforms.

    A kernel at the key of autograd is called once for each level; `torch.autograd.Function` would begin with
    the first level again (torch/_functorch/autograd_function.py, 2.13.0 and 2.15.0).
    """
    from torch.autograd.function import _SingleLevelFunction

    return _SingleLevelFunction


def one_level() -> AbstractContextManager[object]:
    """Return the context in which a function of `one_level_function` is applied."""
    from torch._functorch import autograd_function

    allowed: Any = autograd_function
    entered: AbstractContextManager[object] = allowed.enable_single_level_autograd_function()
    return entered


@contextlib.contextmanager
def below_autograd() -> Iterator[None]:
    """Return the context in which the forward part of such a function calls its op.

    The op then skips autograd at this level of `torch.func` transforms. From there it reaches the levels
    around, where gradients and tangents are followed: torch turns both off in a function's forward part.
    """
    forward_ad: Any = torch.autograd.forward_ad
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
        yield


def is_differentiated(tensor: torch.Tensor) -> bool:
    """Tell whether torch follows what becomes of a tensor, for gradients or in forward mode."""
    return (tensor.requires_grad and torch.is_grad_enabled()) or has_tangent(tensor)


def has_tangent(tensor: torch.Tensor) -> bool:
    """Tell whether torch follows a tensor in forward mode."""
    forward_ad: Any = torch.autograd.forward_ad
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None


def in_transform() -> bool:
    """Tell whether this thread runs a function that `torch.func` transforms."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_wrapped(tensor: torch.Tensor | None) -> bool:
    """Tell whether it is a tensor of such a function, or of a batch of gradients."""
    functorch: Any = torch._C._functorch
    return tensor is not None and (
        functorch.is_functorch_wrapped_tensor(tensor) or functorch.is_legacy_batchedtensor(tensor)
    )


def modes_of_thread() -> list[Any]:
    """Return the dispatch modes that this thread has entered, the outermost first."""
    return [torch._C._get_dispatch_stack_at(at) for at in range(torch._C._len_torch_dispatch_stack())]
