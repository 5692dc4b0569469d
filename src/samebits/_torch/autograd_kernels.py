"""Kernels of our own at the place where torch's dispatcher adds an op to the autograd graph.

torch takes a Python function for that place (`torch.library.Library.impl` with the key `AutogradCPU`). The
kernel that was there is needed for calls that are not ours; `torch.library.get_kernel` gives it, since 2.9.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch import portable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    Kernel = Callable[..., Any]
    """Called with torch's own kernel, and then with the arguments of the op."""

_KEY = "AutogradCPU"


class AutogradKernels:
    """Kernels that are registered for as long as anybody holds them, in all threads.

    Args:
        kernels: by name of the op, such as `clamp` or `clamp.Tensor`; with its namespace if that is not aten.
    """

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self._kernels = dict(kernels)
        self._lock = threading.Lock()
        self._holders = 0
        self._libraries: dict[str, Any] = {}

    def hold(self) -> None:
        """Register them, unless they are."""
        with self._lock:
            if self._holders == 0:
                self._register()
            self._holders += 1

    def release(self) -> None:
        """Take them out again, once nobody holds them."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._take_out()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Return a context in which they are registered."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def _register(self) -> None:
        if not can_override():
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"(?s).*[Oo]verriding a previously registered kernel")
            try:
                for name, kernel in self._kernels.items():
                    self._override(name, kernel)
            except BaseException:
                self._take_out()
                raise

    def _take_out(self) -> None:
        while self._libraries:
            self._libraries.popitem()[1]._destroy()

    def _override(self, name: str, kernel: Kernel) -> None:
        own = torch.library.get_kernel(op_named(name), _KEY)
        namespace, _, rest = _whole(name).partition("::")

        def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            return kernel(lambda: own.call_boxed(keyset, *args, **kwargs), *args, **kwargs)

        # Not by `Library.impl`: torch would count the op among those that Python code made (dispatch_key.py).
        self._library(namespace).m.impl(rest, _KEY, run, True)

    def _library(self, namespace: str) -> Any:
        if namespace not in self._libraries:
            library: Any = torch.library.Library
            self._libraries[namespace] = library(namespace, "IMPL")
        return self._libraries[namespace]


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


def op_named(name: str) -> Any:
    """Return the op of a name such as `clamp` or `clamp.Tensor`: of aten, unless it says otherwise."""
    return portable.op_named(_whole(name))


def _whole(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


def can_override() -> bool:
    """Tell whether this torch gives the kernel that one of ours replaces (since 2.9)."""
    return hasattr(torch.library, "get_kernel")


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
