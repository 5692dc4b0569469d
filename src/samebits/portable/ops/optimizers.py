"""Fused optimizer steps, and the scaling of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.portable._registry import handles, rounds_itself
from samebits.portable._tensors import LOW_PRECISION, raised
from samebits.portable.kernels import optimizer as kernels
from samebits.portable.kernels.elementwise import sqrt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor


@handles("aten::_fused_adam_", "aten::_fused_adam_.tensor_lr")
@rounds_itself
def fused_adam(*lists: Sequence[Tensor], lr: float | Tensor, **options: Any) -> None:
    """Compute `aten::_fused_adam_`: weight decay is added to the gradient."""
    _adam(lists, float(lr), decay=options["weight_decay"], shrink=1.0, options=options)


@handles("aten::_fused_adamw_", "aten::_fused_adamw_.tensor_lr")
@rounds_itself
def fused_adamw(*lists: Sequence[Tensor], lr: float | Tensor, **options: Any) -> None:
    """Compute `aten::_fused_adamw_`: weight decay shrinks the parameter."""
    _adam(lists, float(lr), decay=0.0, shrink=1 - float(lr) * options["weight_decay"], options=options)


def _adam(
    lists: tuple[Sequence[Tensor], ...], lr: float, *, decay: float, shrink: float, options: dict[str, Any]
) -> None:
    params, grads, firsts, seconds, highest, steps = lists
    if not _goes_on(grads, options):
        return
    beta1, beta2 = options["beta1"], options["beta2"]
    rule = kernels.AdamRule(
        shrink=shrink,
        decay=decay,
        weight=1 - beta1,
        keep=beta2,
        gain=1 - beta2,
        eps=options["eps"],
        amsgrad=options["amsgrad"],
        maximize=options["maximize"],
    )
    columns = (params, grads, firsts, seconds, *([highest] if rule.amsgrad else []))
    scales = [_bias(lr, beta1, beta2, float(step)) for step in steps]
    _by_dtype(list(zip(*columns, strict=True)), scales, lambda *given: kernels.adam(rule, *given))


def _bias(lr: float, beta1: float, beta2: float, step: float) -> tuple[float, float]:
    return -(lr / (1 - beta1**step)), (1 - beta2**step) ** 0.5


@handles("aten::_fused_sgd_", "aten::_fused_sgd_.tensor_lr")
@rounds_itself
def fused_sgd(*lists: Sequence[Tensor], lr: float | Tensor, **options: Any) -> None:
    """Compute `aten::_fused_sgd_`."""
    params, grads, buffers = lists
    if not _goes_on(grads, options):
        return
    rule = kernels.SgdRule(
        lr=float(lr),
        decay=options["weight_decay"],
        momentum=options["momentum"],
        gain=1 - options["dampening"],
        nesterov=options["nesterov"],
        maximize=options["maximize"],
        first_step=options["is_first_step"],
    )
    columns = (params, grads, *([buffers] if rule.momentum else []))
    groups = list(zip(*columns, strict=True))
    _by_dtype(groups, [()] * len(groups), lambda given, _: kernels.sgd(rule, given))


@handles("aten::_fused_adagrad_", "aten::_fused_adagrad_.tensor_lr")
@rounds_itself
def fused_adagrad(*lists: Sequence[Tensor], lr: float | Tensor, **options: Any) -> None:
    """Compute `aten::_fused_adagrad_`."""
    params, grads, sums, steps = lists
    if not _goes_on(grads, options):
        return
    for param, grad, total, step in zip(params, grads, sums, steps, strict=True):
        rate = float(lr) / (1 + (float(step) - 1) * options["lr_decay"])
        _adagrad(param, grad, total, rate, options)


def _adagrad(param: Tensor, grad: Tensor, total: Tensor, rate: float, options: dict[str, Any]) -> None:
    p, g, t = raised(param), raised(grad), raised(total)
    g = -g if options["maximize"] else g
    if options["weight_decay"] != 0:
        g = g + p * options["weight_decay"]
    t = t + g * g
    total.copy_(t)
    param.copy_(p + (g * -rate) / (sqrt(t) + options["eps"]))


def _goes_on(grads: Sequence[Tensor], options: dict[str, Any]) -> bool:
    """Unscale the gradients, or return False if a gradient scaler found inf."""
    overflowed, scale = options.get("found_inf"), options.get("grad_scale")
    if overflowed is not None and float(overflowed) == 1:
        return False
    if scale is not None:
        for grad in grads:
            grad.div_(scale)
    return True


def _by_dtype(
    groups: list[tuple[Tensor, ...]],
    scales: Sequence[Any],
    step: Callable[[list[tuple[Tensor, ...]], Any], None],
) -> None:
    """Call `step` once for each dtype; float16 and bfloat16 in float32, each result rounded once."""
    dtypes = dict.fromkeys(tensor.dtype for group in groups for tensor in group)
    if len(dtypes) == 1 and not dtypes.keys() & LOW_PRECISION:
        step(groups, scales)
        return
    for dtype in dict.fromkeys(group[0].dtype for group in groups):
        chosen = [i for i, group in enumerate(groups) if group[0].dtype == dtype]
        compute = torch.float32 if dtype in LOW_PRECISION else dtype
        work = [tuple(tensor.to(compute) for tensor in groups[i]) for i in chosen]
        step(work, [scales[i] for i in chosen])
        for i, done in zip(chosen, work, strict=True):
            for position, (tensor, result) in enumerate(zip(groups[i], done, strict=True)):
                if tensor is not result and position != 1:
                    tensor.copy_(result)


@handles("aten::_amp_foreach_non_finite_check_and_unscale_")
@rounds_itself
def unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Compute `aten::_amp_foreach_non_finite_check_and_unscale_`: gradients times `inv_scale`, rounded."""
    for gradient in self:
        if not bool(torch.isfinite(gradient).all()):
            found_inf.fill_(1)
        gradient.mul_(inv_scale.to(gradient.dtype) if inv_scale.dim() else inv_scale)


@handles("aten::_amp_update_scale_")
@rounds_itself
def update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Compute `aten::_amp_update_scale_`: down after an infinity, up after enough steps without one."""
    if found_inf.item():
        growth_tracker.zero_()
        return self.copy_(self.double() * scale_backoff_factor)
    steps = int(growth_tracker.item()) + 1
    if steps == growth_interval:
        grown = (self.double() * scale_growth_factor).to(self.dtype)
        if bool(torch.isfinite(grown).all()):
            self.copy_(grown)
        steps = 0
    growth_tracker.fill_(steps)
    return self
