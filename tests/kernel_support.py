"""Calls of torch's functions that deterministic kernels compute, on the CPU or on CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Case:
    """A function of tensors, and the kernels that it comes to.

    Args:
        function: returns a tensor, or several.
        inputs: shapes of floating-point inputs, or functions that make other ones.
        kernels: names in the catalogue.
    """

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    kernels: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...] = (torch.float64, torch.float32, torch.bfloat16)


REAL = (torch.float64, torch.float32)
WHOLE = (torch.int64, torch.int32)
CLOSE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 2e-5, torch.float64: 1e-12}


def resized(**how: Any) -> Callable[..., Any]:
    return lambda x: functional.interpolate(x, **how)


def padded(mode: str, *pads: int) -> Callable[..., Any]:
    return lambda x: functional.pad(x, pads, mode=mode)


def indices(high: int, *shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randint(high, shape)


def sampled(**how: Any) -> Callable[..., Any]:
    return lambda x, grid: functional.grid_sample(x, grid * 1.3, **how)


def unpooled(dims: int) -> Callable[..., Any]:
    pool, unpool = (getattr(functional, f"max_{name}{dims}d") for name in ("pool", "unpool"))
    shape = (2, 3, 4, 6, 8)[: 2 + dims]
    image = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    places = pool(image, 2, return_indices=True)[1]
    return lambda x: unpool(x, places.to(x.device), 2)


def bags(x: torch.Tensor) -> torch.Tensor:
    rows = torch.tensor([4, 1, 1, 0, 5, 4, 2], device=x.device)
    starts = torch.tensor([0, 3, 3, 5], device=x.device)
    return functional.embedding_bag(rows, x, starts, mode="max")


def ctc(*, zero_infinity: bool, flat: bool, lengths: tuple[int, ...]) -> Callable[..., Any]:
    def run(x: torch.Tensor) -> torch.Tensor:
        counts = torch.tensor([3, 1, 2])
        labels = torch.tensor([[1, 1, 2], [3, 0, 0], [2, 4, 0]])
        targets = (labels[torch.arange(3) < counts[:, None]] if flat else labels).to(x.device)
        scores = x.log_softmax(2)
        how = {"reduction": "none", "zero_infinity": zero_infinity}
        return functional.ctc_loss(scores, targets, torch.tensor(lengths), counts, **how)

    return run


def classes(reduction: str, *, weight: bool) -> Callable[..., Any]:
    def run(x: torch.Tensor) -> torch.Tensor:
        target = torch.randint(5, (2, 4, 3), generator=torch.Generator().manual_seed(1))
        target[0, 1] = -100
        weights = torch.linspace(0.5, 2, 5, dtype=x.dtype, device=x.device) if weight else None
        return functional.nll_loss(x.log_softmax(1), target.to(x.device), weights, reduction=reduction)

    return run


CASES = {
    **{
        f"linear-{size}-{align}": Case(
            resized(size=size, mode="linear", align_corners=align),
            ((2, 3, 9),),
            ("upsample_linear1d_backward",),
        )
        for size in (1, 4, 9, 31)
        for align in (True, False)
    },
    "linear-factor": Case(
        resized(scale_factor=1.7, mode="linear", recompute_scale_factor=False),
        ((2, 3, 9),),
        ("upsample_linear1d_backward",),
    ),
    **{
        f"{mode}-{size}-{align}": Case(
            resized(size=size, mode=mode, align_corners=align),
            ((2, 3, 6, 7),),
            (f"upsample_{mode}2d_backward",),
        )
        for mode in ("bilinear", "bicubic")
        for size in ((3, 4), (13, 15), (1, 20))
        for align in (True, False)
    },
    **{
        f"{mode}-smooth-{size}": Case(
            resized(size=size, mode=mode, antialias=True),
            ((2, 3, 16, 17),),
            (f"_upsample_{mode}2d_aa_backward",),
            REAL,
        )
        for mode in ("bilinear", "bicubic")
        for size in ((5, 6), (30, 19), (1, 1))
    },
    "trilinear": Case(
        resized(size=(3, 9, 5), mode="trilinear"), ((2, 3, 5, 4, 6),), ("upsample_trilinear3d_backward",)
    ),
    **{
        f"{mode}-{dims}-{'batch' if batch else 'one'}": Case(
            padded(mode, *range(1, 2 * dims + 1)),
            ((*((2,) if batch else ()), 3, *(7, 8, 9)[:dims]),),
            (f"{'reflection' if mode == 'reflect' else 'replication'}_pad{dims}d_backward",),
            REAL,
        )
        for mode, dims in (
            ("reflect", 1),
            ("reflect", 3),
            ("replicate", 1),
            ("replicate", 2),
            ("replicate", 3),
        )
        for batch in (True, False)
    },
    "replicate-cropped": Case(
        padded("replicate", -1, 3, 2, -2), ((2, 3, 6, 7),), ("replication_pad2d_backward",)
    ),
    **{
        f"adaptive-mean-{shape}-{size}": Case(
            lambda x, size=size: getattr(functional, f"adaptive_avg_pool{len(size)}d")(x, size),
            (shape,),
            (f"_adaptive_avg_pool{len(size)}d_backward",),
        )
        for shape, size in (
            ((2, 3, 7, 9), (3, 4)),
            ((2, 3, 7, 9), (10, 2)),
            ((3, 7, 9), (1, 5)),
            ((2, 3, 5, 6, 7), (2, 3, 9)),
        )
    },
    **{
        f"mean-3d-{n}": Case(
            lambda x, how=how: functional.avg_pool3d(x, *how),
            ((2, 3, 7, 8, 9),),
            ("avg_pool3d_backward",),
            REAL,
        )
        for n, how in enumerate(
            (
                (2,),
                (3, 2, 1),
                ((3, 2, 4), (1, 2, 3), (1, 1, 2), True),
                (3, 2, 1, True, False),
                (3, 2, 1, False, True, 5),
                (2, 4),
            )
        )
    },
    **{
        f"adaptive-largest-{len(size)}": Case(
            lambda x, size=size: getattr(functional, f"adaptive_max_pool{len(size)}d")(x, size),
            ((2, 3, 7, 8, 9)[: 2 + len(size)],),
            (f"adaptive_max_pool{len(size)}d_backward",),
        )
        for size in ((3, 5), (2, 5, 4))
    },
    "largest-3d": Case(
        lambda x: functional.max_pool3d(x, 3, 1, 1),
        ((2, 3, 5, 6, 7),),
        ("max_pool3d_with_indices_backward",),
        REAL,
    ),
    **{
        f"fractional-{dims}": Case(
            lambda x, dims=dims: getattr(functional, f"fractional_max_pool{dims}d")(
                x, 3, 4, _random_samples=x.new_full((2, 3, dims), 0.3)
            ),
            ((2, 3, 9, 8, 9)[: 2 + dims],),
            (f"fractional_max_pool{dims}d_backward",),
            REAL,
        )
        for dims in (2, 3)
    },
    **{
        f"unpool-{dims}": Case(
            unpooled(dims), ((2, 3, 2, 3, 4)[: 2 + dims],), (f"max_unpool{min(dims, 3)}d",), REAL
        )
        for dims in (2, 3)
    },
    **{
        f"grid-{len(shape) - 2}-{mode}-{padding}-{align}": Case(
            sampled(mode=mode, padding_mode=padding, align_corners=align),
            (shape, (2, *(4, 5, 3)[: len(shape) - 2], len(shape) - 2)),
            (f"grid_sampler_{len(shape) - 2}d_backward",),
            REAL,
        )
        for shape, modes in (
            ((2, 3, 6, 7), ("bilinear", "nearest", "bicubic")),
            ((2, 3, 4, 5, 6), ("bilinear", "nearest")),
        )
        for mode in modes
        for padding in ("zeros", "border", "reflection")
        for align in (True, False)
    },
    **{
        f"scatter-{reduce}": Case(
            lambda x, at, y, reduce=reduce: x.detach().scatter(1, at, y.detach(), reduce=reduce),
            ((4, 5), indices(5, 3, 4), (3, 6)),
            ("scatter.reduce",),
            (*REAL, *WHOLE),
        )
        for reduce in ("add", "multiply")
    },
    "scatter-number": Case(
        lambda x, at: x.detach().scatter(0, at, 1.5, reduce="multiply"),
        ((4, 5), indices(4, 6, 5)),
        ("scatter.value_reduce",),
        REAL,
    ),
    **{
        f"scatter-prod-{include}": Case(
            lambda x, at, y, include=include: x.scatter_reduce(1, at, y, "prod", include_self=include),
            ((4, 5), indices(5, 3, 8), (3, 8)),
            ("scatter_reduce.two",),
            (*REAL, torch.bfloat16, *WHOLE),
        )
        for include in (True, False)
    },
    **{
        f"index-{reduce}-{include}-{dim}": Case(
            lambda x, at, y, args=(dim, reduce, include): x.index_reduce(
                args[0], at, y, args[1], include_self=args[2]
            ),
            ((5, 3), indices((5, 3)[dim], 9), ((9, 3), (5, 9))[dim]),
            ("index_reduce",),
            (*REAL, torch.bfloat16, *WHOLE),
        )
        for reduce in ("prod", "mean", "amax", "amin")
        for include in (True, False)
        for dim in (0, 1)
    },
    **{
        f"put-{accumulate}": Case(
            lambda x, at, y, accumulate=accumulate: x.clone().put_(at - 3, y, accumulate=accumulate),
            ((4, 5), lambda: torch.randperm(20)[:12].reshape(3, 4), (3, 4)),
            ("put_",),
            (*REAL, *WHOLE),
        )
        for accumulate in (True, False)
    },
    "bags": Case(bags, ((6, 3),), ("_embedding_bag_dense_backward",), REAL),
    **{
        f"ctc-{zero}-{flat}-{lengths}": Case(
            ctc(zero_infinity=zero, flat=flat, lengths=lengths), ((7, 3, 6),), ("_ctc_loss_backward",), REAL
        )
        for zero in (True, False)
        for flat in (True, False)
        for lengths in ((7, 6, 5), (7, 6, 1), (3, 6, 5))
    },
    **{
        f"classes-{weight}-{reduction}": Case(
            classes(reduction, weight=weight), ((2, 5, 4, 3),), ("nll_loss2d_forward",), REAL
        )
        for weight in (True, False)
        for reduction in ("none", "mean", "sum")
    },
    "histogram": Case(lambda x: torch.histc(x.detach(), 7, -2, 2), ((50,),), ("histc",), REAL),
    "histogram-whole": Case(lambda x: torch.histc(x.detach(), 9), ((5, 9),), ("histc",), REAL),
    "weights": Case(
        lambda x, at: torch.bincount(at, x.detach(), 12), ((50,), indices(9, 50)), ("bincount",), REAL
    ),
    **{
        f"{name}-{dim}": Case(
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim, keepdim=dim == 1),
            ((4, 5, 6),),
            (f"{name}.dim_values",),
            REAL,
        )
        for name in ("median", "nanmedian")
        for dim in (0, 1, -1)
    },
    **{
        f"kth-{k}-{dim}": Case(
            lambda x, k=k, dim=dim: torch.kthvalue(x, k, dim),
            ((4, 5, 6),),
            ("kthvalue.values",),
            REAL,
        )
        for k, dim in ((1, 0), (4, -1), (5, 1))
    },
}


def made(case: Case, dtype: torch.dtype, device: str = "cpu") -> list[torch.Tensor]:
    """Return inputs with the same values each time; those of floating point require a gradient."""
    torch.manual_seed(0)
    return [_input(entry, dtype).to(device).requires_grad_(_is_real(entry, dtype)) for entry in case.inputs]


def _input(entry: Any, dtype: torch.dtype) -> torch.Tensor:
    if callable(entry):
        return entry()
    return (
        torch.randn(entry, dtype=dtype)
        if dtype.is_floating_point
        else torch.randint(-3, 4, entry, dtype=dtype)
    )


def _is_real(entry: Any, dtype: torch.dtype) -> bool:
    return dtype.is_floating_point and not callable(entry)


def results(case: Case, dtype: torch.dtype, device: str = "cpu") -> list[torch.Tensor]:
    """Return what the function returns, and the gradients of all inputs that have one, on the CPU."""
    inputs = made(case, dtype, device)
    returned = case.function(*inputs)
    outputs = list(returned) if isinstance(returned, tuple) else [returned]
    first, wanted = outputs[0], [x for x in inputs if x.requires_grad]
    if wanted and first.requires_grad:
        weights = torch.linspace(0.5, 1.5, max(first.numel(), 1), dtype=torch.float64)
        weights = weights.reshape(first.shape).to(device, first.dtype)
        outputs += torch.autograd.grad(first, wanted, weights, allow_unused=True)
    return [each.detach().cpu() for each in outputs if each is not None]
