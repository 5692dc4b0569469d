"""Gradients whose formulas differ between releases of torch, in portable mode's own hands.

Portable mode works below autograd: it computes the ops that a gradient consists of, and which ops these are
is up to the formulas of the release (tools/autograd/derivatives.yaml). From 2.6.0 to 2.13.0 those of the ops
here are the same, and 2.14.0 changed them: where a value is at a bound, `clamp` gives no gradient any more;
`fmax` shares it between equals; `log_ndtr` is computed in another order, and `log10` with another last bit of
its constant. Portable mode keeps the formulas of 2.6 to 2.13.

Each is a linear map of the slope, element by element: the same one carries a gradient back and a tangent
forwards.
"""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.autograd_kernels import below_autograd, is_differentiated, one_level, one_level_function
from samebits._torch.kernel_overrides import KernelOverrides, op_named
from samebits.portable._devices import graph_keys
from samebits.portable._dispatch import is_portable
from samebits.portable._exact import base_name
from samebits.portable._whole_ops import whole_ops
from samebits.portable.determinant_gradients import determinant_kernels
from samebits.portable.graph_gradients import graph_kernels
from samebits.portable.mask_gradients import mask_kernels
from samebits.portable.product_gradients import product_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from samebits._torch.kernel_overrides import Kernel


@dataclass(frozen=True)
class Formula:
    """How an op carries a slope.

    Args:
        carried: function of the number of an argument, the slope, the result of the op and its arguments; it
            returns the slope times the derivative by that argument.
        needs_result: whether it looks at the result, which is kept for it then.
    """

    carried: Callable[..., Tensor]
    needs_result: bool = False


_Bound = Any  # a tensor, a number or None


def _clamp(which: int, slope: Tensor, _: None, x: Tensor, low: _Bound = None, high: _Bound = None) -> Tensor:
    if which == 1:
        kept = x < low if high is None else (x < low) & (low < high)
    elif which == 2:
        kept = x > high if low is None else (x > high) | (high < low)
    elif low is None or high is None:
        kept = x <= high if low is None else x >= low
    else:
        kept = (x >= low) & (x <= high)
    given: Tensor = torch.where(kept, slope, 0.0)
    return given


def _clamp_min(which: int, slope: Tensor, result: None, x: Tensor, low: _Bound) -> Tensor:
    return _clamp(which, slope, result, x, low)


def _clamp_max(which: int, slope: Tensor, result: None, x: Tensor, high: _Bound) -> Tensor:
    return _clamp(2 * which, slope, result, x, None, high)


def _fmax(which: int, slope: Tensor, _: None, x: Tensor, y: Tensor) -> Tensor:
    is_first = (x >= y) | y.isnan()
    return slope.masked_fill(is_first if which else ~is_first, 0)


def _fmin(which: int, slope: Tensor, _: None, x: Tensor, y: Tensor) -> Tensor:
    is_first = (x <= y) | y.isnan()
    return slope.masked_fill(is_first if which else ~is_first, 0)


def _log_ndtr(_: int, slope: Tensor, result: Tensor, x: Tensor) -> Tensor:
    return slope / math.sqrt(2 * math.pi) * (result + x.pow(2) / 2).neg().exp()


def _log10(_: int, slope: Tensor, __: None, x: Tensor) -> Tensor:
    return slope / (x.conj() * 2.3025850929940456)  # one unit in the last place below the nearest number


_FORMULAS: dict[str, Formula] = {
    "clamp": Formula(_clamp),
    "clamp.Tensor": Formula(_clamp),
    "clamp_min": Formula(_clamp_min),
    "clamp_min.Tensor": Formula(_clamp_min),
    "clamp_max": Formula(_clamp_max),
    "clamp_max.Tensor": Formula(_clamp_max),
    "fmax": Formula(_fmax),
    "fmin": Formula(_fmin),
    "special_log_ndtr": Formula(_log_ndtr, needs_result=True),
    "log10": Formula(_log10),
}
_IN_PLACE = (
    "clamp", "clamp.Tensor", "clamp_min", "clamp_min.Tensor", "clamp_max", "clamp_max.Tensor", "log10",
)  # fmt: skip


@contextlib.contextmanager
def own_gradients() -> Iterator[None]:
    """Return a context in which these ops have their gradients, in threads that are in portable mode."""
    with contextlib.ExitStack() as held:
        for overrides in _overrides():
            held.enter_context(overrides.held())
        yield


@functools.cache
def _overrides() -> tuple[KernelOverrides, ...]:
    """Return the kernels for each device, and those of torch's compositions that are computed whole."""
    kernels = {name: _kernel(name, formula) for name, formula in _FORMULAS.items()}
    in_place = {_in_place(name): _writing_kernel(name) for name in _IN_PLACE}
    others = graph_kernels() | product_kernels() | mask_kernels() | determinant_kernels()
    gradients = kernels | in_place | {name: _unless_plain(kernel) for name, kernel in others.items()}
    return tuple(KernelOverrides(gradients | _whole(device), key) for device, key in graph_keys().items())


def _whole(device: str) -> dict[str, Kernel]:
    return {name: _if_portable(run) for name, run in whole_ops(device).items()}


def _unless_plain(kernel: Kernel) -> Kernel:
    """Return a kernel that is run in portable mode, and only where there is something to differentiate."""

    def run(otherwise: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        return kernel(otherwise, *args, **kwargs) if _is_ours(args) else otherwise()

    return run


def _if_portable(kernel: Kernel) -> Kernel:
    """Return a kernel that is run in portable mode."""

    def run(otherwise: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        return kernel(otherwise, *args, **kwargs) if is_portable() else otherwise()

    return run


def _in_place(name: str) -> str:
    base, dot, overload = name.partition(".")
    return f"{base}_{dot}{overload}"


def _kernel(name: str, formula: Formula) -> Callable[..., Any]:
    function = _function(op_named(name), formula)

    def run(otherwise: Callable[[], Any], *args: Any) -> Any:
        if not _is_ours(args):
            return otherwise()
        with one_level():
            return function.apply(*args)

    return run


def _writing_kernel(name: str) -> Callable[..., Any]:
    function = _writing_function(op_named(_in_place(name)), _FORMULAS[name])

    def run(otherwise: Callable[[], Any], target: Tensor, *rest: Any) -> Any:
        if not _is_ours((target, *rest)):
            return otherwise()
        before = target.clone()
        with one_level():
            return function.apply(target, before, *rest)

    return run


def _is_ours(args: tuple[Any, ...]) -> bool:
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    return any(map(is_differentiated, tensors)) and is_portable()


def _function(op: Any, formula: Formula) -> Any:
    """Return the autograd function of an op with that formula."""

    def forward(ctx: Any, *args: Any) -> Any:
        with below_autograd():
            result = op(*args)
        _save(ctx, result if formula.needs_result else None, args)
        return result

    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return _gradients(formula, ctx.needs_input_grad, slope, _saved(ctx))

    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        return _tangent(formula, tangents, _saved(ctx))

    return _class(op, forward, backward, jvp)


def _writing_function(op: Any, formula: Formula) -> Any:
    """Return the autograd function of an op in place: of what it writes to, a copy of that, and the rest."""

    def forward(ctx: Any, target: Tensor, *args: Any) -> Any:
        ctx.mark_dirty(target)
        with below_autograd():
            op(target, *args[1:])
        _save(ctx, target if formula.needs_result else None, args)
        return target

    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        first, _, *others = ctx.needs_input_grad
        gradient, *rest = _gradients(formula, [first, *others], slope, _saved(ctx))
        return gradient, None, *rest

    def jvp(ctx: Any, tangent: Tensor, *tangents: Tensor | None) -> Tensor:
        return tangent.copy_(_tangent(formula, tangents, _saved(ctx)))

    return _class(op, forward, backward, jvp)


def _class(op: Any, *methods: Callable[..., Any]) -> Any:
    name = "".join(word.capitalize() for word in base_name(op).split("_"))
    return type(name, (one_level_function(),), {each.__name__: staticmethod(each) for each in methods})


def _gradients(
    formula: Formula, wanted: Sequence[bool], slope: Tensor, saved: list[Any]
) -> tuple[Tensor | None, ...]:
    return tuple(formula.carried(at, slope, *saved) if each else None for at, each in enumerate(wanted))


def _tangent(formula: Formula, tangents: tuple[Tensor | None, ...], saved: list[Any]) -> Tensor:
    given = [(at, each) for at, each in enumerate(tangents) if each is not None]
    parts = [formula.carried(at, each, *saved) for at, each in given]
    return functools.reduce(torch.add, parts)


def _save(ctx: Any, result: Tensor | None, args: tuple[Any, ...]) -> None:
    tensors = [each if isinstance(each, torch.Tensor) else None for each in args]
    ctx.save_for_backward(result, *tensors)
    ctx.save_for_forward(result, *tensors)
    ctx.numbers = [None if isinstance(each, torch.Tensor) else each for each in args]


def _saved(ctx: Any) -> list[Any]:
    """Return the result, if it is needed, and the arguments of the op."""
    result, *saved = ctx.saved_tensors
    return [
        result,
        *(number if each is None else each for each, number in zip(saved, ctx.numbers, strict=True)),
    ]
