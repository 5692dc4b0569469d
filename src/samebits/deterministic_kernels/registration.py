"""Deterministic kernels in torch's dispatcher, in front of those that refuse or differ from run to run.

They compute while torch's deterministic algorithms are on. Else torch's own kernels do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.core import is_alert
from samebits._torch.cuda_start import when_cuda_starts
from samebits._torch.kernel_overrides import KernelOverrides, can_override
from samebits._torch.op_forms import delivery_of, forms_of, outputs_of
from samebits.deterministic_kernels.unfit import UnfitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ON_CPU = ("max_unpool2d", "max_unpool3d", "put_")  # refused on the CPU too (torch 2.13.0, 2.15.0)


def overrides_for(key: str, kernels: Mapping[str, Callable[..., Any]]) -> KernelOverrides:
    """Return those kernels for one kind of device; to hold all takes some ten milliseconds.

    Args:
        key: `CUDA` or `CPU`.
        kernels: by name of the op, as `all_kernels.KERNELS`.
    """
    forms = {form: compute for name, compute in kernels.items() for form in forms_of(name, key)}
    return KernelOverrides({form: _kernel(form, compute) for form, compute in forms.items()}, key)


def _kernel(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of one form of an op.

    Args:
        name: of the form.
        compute: the result of the op, from the arguments that all forms have.
    """
    deliver, outputs = delivery_of(name), outputs_of(name)

    def run(otherwise: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        if not torch.are_deterministic_algorithms_enabled():
            return otherwise()
        given = {key: value for key, value in kwargs.items() if key not in outputs}
        try:
            result = compute(*args, **given)
        except UnfitError:
            return otherwise()
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, IndexError, ValueError, ZeroDivisionError) as error:
            return _explained(otherwise, error)
        return deliver(args, kwargs, result)

    return run


def _explained(otherwise: Callable[[], Any], error: Exception) -> Any:
    """Have torch say what is wrong with a call, as it does without us; else raise our error.

    Args:
        otherwise: torch's own kernel. Called with what does not fit, it says so before it computes.
        error: ours.
    """
    if torch.is_deterministic_algorithms_warn_only_enabled():
        raise error  # torch would compute, in any order
    try:
        return otherwise()
    except RuntimeError as own:
        if is_alert(own):
            raise error from None
        raise


class DeterministicKernels:
    """The kernels of a process under control: on the CPU at once, on CUDA when that is used first."""

    def __init__(self) -> None:
        self._held: list[KernelOverrides] = []
        self._withdraw: Callable[[], None] = lambda: None

    def install(self) -> None:
        """Register them. Before torch 2.9 there is no way to, and torch's own kernels refuse."""
        if not can_override():
            return
        self._hold("CPU", {name: _looked_up(name) for name in _ON_CPU})
        self._withdraw = when_cuda_starts(self._with_cuda)

    def remove(self) -> None:
        """Take them out."""
        self._withdraw()
        while self._held:
            self._held.pop().release()

    def _with_cuda(self) -> None:
        from samebits.deterministic_kernels.all_kernels import KERNELS

        self._hold("CUDA", KERNELS)

    def _hold(self, key: str, kernels: Mapping[str, Callable[..., Any]]) -> None:
        overrides = overrides_for(key, kernels)
        overrides.hold()
        self._held.append(overrides)


def _looked_up(name: str) -> Callable[..., Any]:
    """Return a kernel that is imported when it is needed: control begins before most scripts need any."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        from samebits.deterministic_kernels.all_kernels import KERNELS

        return KERNELS[name](*args, **kwargs)

    return compute
