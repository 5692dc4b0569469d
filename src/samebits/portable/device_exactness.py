"""Ops of torch that are exact on the CPU, and on a GPU not, or otherwise: there they give what the CPU gives.

For example `x / 3` on a GPU multiplies by 1 / 3, which has been rounded already (`div_true_kernel_cuda` and
its like in ATen/native/cuda/BinaryDivTrueKernel.cu, 2.13.0). Where the divisor lies on the GPU, it divides.
Places that are met twice, and those that interpolation takes, are in device_places.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.kernel_overrides import KernelOverrides, op_named
from samebits._torch.op_forms import delivery_of, forms_of, outputs_of
from samebits.portable._devices import CUDA, device_types
from samebits.portable._tensors import LOW_PRECISION
from samebits.portable.device_places import index_copied, interpolations, pooled, scattered

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Number = Tensor | float
    Compute = Callable[..., Any]


@functools.cache
def exact_on_gpu() -> KernelOverrides:
    """Return the kernels of these ops for tensors on a GPU; none where torch takes none from Python."""
    if CUDA not in device_types():
        return KernelOverrides({}, "CUDA")
    kernels = {
        form: _kernel(form, op_named(name), compute)
        for name, compute in computations().items()
        for form in forms_of(name, "CUDA")
    }
    return KernelOverrides(kernels, "CUDA")


def computations() -> dict[str, Compute]:
    """Return what gives the result of each op.

    It is called with torch's own kernel, which makes the result of the arguments, and with the arguments; it
    returns None where torch's kernel is exact.
    """
    return {
        **dict.fromkeys(("div.Tensor", "div.Tensor_mode", "floor_divide"), divided),
        **dict.fromkeys(("add.Tensor", "sub.Tensor"), added),
        "mul.Tensor": multiplied,
        "threshold": compared,
        "threshold_backward": compared,
        "scatter.src": scattered,
        "index_copy": index_copied,
        **interpolations(),
        **pooled(),
    }


def _kernel(form: str, plain: Any, compute: Compute) -> Compute:
    deliver, outputs = delivery_of(form), outputs_of(form)
    in_place = form.partition(".")[0].endswith("_")

    def run(otherwise: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        given = {name: value for name, value in kwargs.items() if name not in outputs}
        result = compute(plain, *args, **given)
        if result is None:
            return otherwise()
        if isinstance(result, torch.Tensor):
            result = _as_written(result, kwargs[outputs[0]] if outputs else args[0] if in_place else result)
        return deliver(args, kwargs, result)

    return run


def _as_written(result: Tensor, target: Tensor) -> Tensor:
    """Return a result in the dtype of what it is written to.

    Raises:
        RuntimeError: where torch does not write it there.
    """
    if not torch.can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"result type {result.dtype} can't be cast to the desired output type {target.dtype}"
        )
    return result.to(target.dtype)


def _is_number(value: Number) -> bool:
    """Tell whether it is a number for torch: one of Python, or a tensor without dimensions."""
    return not isinstance(value, torch.Tensor) or not value.dim()


def _on(device: torch.device | str, value: Number, dtype: torch.dtype) -> Tensor:
    if isinstance(value, torch.Tensor):
        return value.to(device).to(dtype)
    return torch.full((), value, dtype=dtype, device=device)


def _device_of(*values: Number) -> torch.device:
    """Return where the tensors are: on a GPU if one of them is."""
    devices = [each.device for each in values if isinstance(each, torch.Tensor)]
    return next((device for device in devices if device.type != "cpu"), devices[0])


def _left_to_torch(op: Any, *values: Number, **kwargs: Any) -> Tensor | None:
    """Return None, for torch's own kernel to be called; it takes no numbers of Python: then call the op."""
    if all(isinstance(each, torch.Tensor) for each in values):
        return None
    dtype = torch.result_type(values[0], values[1])
    result: Tensor = op(
        *(each if isinstance(each, torch.Tensor) else _on("cpu", each, dtype) for each in values), **kwargs
    )
    return result


def divided(divide: Any, x: Number, divisor: Number, **kwargs: Any) -> Tensor | None:
    """Return a quotient that is rounded once.

    Args:
        divide: `aten::div` or its like.
        x: the dividend.
        divisor: a number, or a tensor.
        **kwargs: of the op.
    """
    dtype = torch.result_type(x, divisor)
    if dtype in LOW_PRECISION:
        return _by_wide_number(divide, x, divisor, **kwargs)
    if dtype.is_complex or (isinstance(divisor, torch.Tensor) and not divisor.is_cpu):
        return _left_to_torch(divide, x, divisor, **kwargs)
    quotient: Tensor = divide(x, _on(_device_of(x, divisor), divisor, dtype), **kwargs)
    return quotient


def multiplied(multiply: Any, x: Number, factor: Number) -> Tensor | None:
    """Return a product of float16 or bfloat16 values that is rounded once."""
    if torch.result_type(x, factor) in LOW_PRECISION:
        return _by_wide_number(multiply, x, factor)
    return _left_to_torch(multiply, x, factor)


def _by_wide_number(op: Any, x: Number, number: Number, **kwargs: Any) -> Tensor | None:
    """Return what the CPU gives of float16 or bfloat16 values and a number that may have more digits.

    One that comes second counts with all of float32, one that comes first is rounded to the dtype.
    """
    dtype = torch.result_type(x, number)
    if _is_number(number) and getattr(number, "dtype", None) != dtype and isinstance(x, torch.Tensor):
        wide = op(x.to(torch.float32), _on(x.device, number, torch.float32), **kwargs)
        result: Tensor = wide.to(dtype)
        return result
    if _is_number(x) and getattr(x, "dtype", None) != dtype:
        rounded: Tensor = op(_on(_device_of(x, number), x, dtype), number, **kwargs)
        return rounded
    return None


def added(add: Any, x: Number, other: Number, *, alpha: float = 1) -> Tensor | None:
    """Return a sum of float16 or bfloat16 values, of which a number is rounded to their dtype first."""
    dtype = torch.result_type(x, other)
    if dtype not in LOW_PRECISION:
        return _left_to_torch(add, x, other, alpha=alpha)
    wide = [_is_number(each) and getattr(each, "dtype", None) != dtype for each in (x, other)]
    if not any(wide):
        return None
    device = _device_of(x, other)
    values = (
        _on(device, each, dtype) if is_wide else each for each, is_wide in zip((x, other), wide, strict=True)
    )
    total: Tensor = add(*values, alpha=alpha)
    return total


def compared(op: Any, x: Tensor, *rest: Any) -> Tensor | None:
    """Return float16 or bfloat16 values compared with a number that may have more digits."""
    if x.dtype not in LOW_PRECISION:
        return None
    result: Tensor = op(
        *(each.to(torch.float32) if isinstance(each, torch.Tensor) else each for each in (x, *rest))
    )
    return result.to(x.dtype)
