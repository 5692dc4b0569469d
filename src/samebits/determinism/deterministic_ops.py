"""Ops that raise under deterministic algorithms: replacements for them, and an explanation of the error."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits._runtime.frames import LIBRARY, USER, FrameRanks, Site, site_of

if TYPE_CHECKING:
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice about one op, or a family of ops.

    Args:
        pattern: a regular expression for the name in torch's error.
        op: its name as the user knows it.
        instead: the replacement.
        backward: the backward pass raises.
        ours: control has a deterministic kernel of it for CUDA (samebits/deterministic_kernels).
    """

    pattern: str
    op: str
    instead: str
    backward: bool = False
    ours: bool = True


_INTERPOLATE = "torch.nn.functional.interpolate"
# The release is the oldest of 2.7.1, 2.11.0, 2.13.0 and 2.15.0 whose torch/nn/functional.py has that way.
_FUNCTIONAL = (
    "with torch {since} or later, call {op} itself, not `torch.ops.aten` and not from TorchScript, and begin "
    "control before the forward pass, because it picks a deterministic way at that moment"
)
_UNPOOL = (
    "write the values with `torch.zeros(...).scatter_add(...)` if no index occurs twice, or upsample with "
    f"`{_INTERPOLATE}(mode='nearest')`"
)
_ADAPTIVE = "AvgPool with a fixed kernel and stride, which gives the same when the sizes divide"
_FRACTIONAL = "MaxPool with a fixed kernel and stride"
_RESAMPLE = "run it on the CPU, or resample with `torch.nn.functional.interpolate` where the grid is regular"
_SORT = "`torch.sort(...)` and take the middle element and its index"

ADVICE = (
    Advice("max_unpooling2d_forward_out", "MaxUnpool1d or MaxUnpool2d", _UNPOOL),
    Advice("max_unpooling3d_forward_out", "MaxUnpool3d", _UNPOOL),
    Advice(
        "put_",
        "Tensor.put_",
        "`put_(..., accumulate=True)` on zeros on the CPU, or `index_put_` on a flat view with "
        "indices that occur once",
    ),
    Advice(
        "quantized_resize_cpu_|quantized_resize",
        "Tensor.resize_ of a quantized tensor",
        "make a tensor of that size with `torch.quantize_per_tensor` and copy into it",
        ours=False,
    ),
    Advice("adaptive_avg_pool2d_backward_(cuda|out_cuda)", "AdaptiveAvgPool2d", _ADAPTIVE, backward=True),
    Advice("adaptive_avg_pool3d_backward_(cuda|out_cuda)", "AdaptiveAvgPool3d", _ADAPTIVE, backward=True),
    Advice(
        "adaptive_max_pool[23]d_backward_cuda",
        "AdaptiveMaxPool",
        "MaxPool with a fixed kernel and stride",
        backward=True,
    ),
    Advice(
        "avg_pool3d_backward(_cuda|_out_cuda)?",
        "AvgPool3d",
        "`Conv3d` with constant weights 1/n, per channel (`groups`)",
        backward=True,
    ),
    Advice(
        "max_pool3d_with_indices_backward_(cuda|out_cuda)",
        "MaxPool3d",
        _FUNCTIONAL.format(op="`torch.nn.functional.max_pool3d`", since="2.13"),
        backward=True,
    ),
    Advice("max_pool.*_backward.*", "MaxPool on MPS", "run it on the CPU", backward=True),
    Advice(
        "fractional_max_pool[23]d_backward_(cuda|out_cuda)", "FractionalMaxPool", _FRACTIONAL, backward=True
    ),
    Advice(
        "embedding_bag_backward_cuda_max",
        "EmbeddingBag(mode='max')",
        "`Embedding` and `Tensor.amax` over the bag",
        backward=True,
    ),
    Advice(
        "_?embedding_(dense|bag_dense|bag_per_sample_weights)_backward_mps",
        "Embedding or EmbeddingBag on MPS",
        "a product with `torch.nn.functional.one_hot`",
        backward=True,
    ),
    Advice(
        "(cudnn_grid_sampler|grid_sampler_[23]d)_backward(_cuda|_mps)?",
        "grid_sample",
        _RESAMPLE,
        backward=True,
    ),
    Advice(
        "index_reduce_(cuda|mps)",
        "Tensor.index_reduce",
        "`scatter_reduce` with 'sum' or 'mean', or `index_add` for sums",
    ),
    Advice("index_put_with_accumulate_mps", "index_put with accumulate on MPS", "`index_add`"),
    Advice("ctc_loss_backward_gpu", "CTCLoss", "run the loss on the CPU: `log_probs.cpu()`", backward=True),
    Advice(
        "nll_loss2d_forward_out_cuda_template",
        "NLLLoss or cross_entropy of images (4-D input)",
        "move the classes last and flatten: `cross_entropy(x.movedim(1, -1).flatten(0, -2), y.flatten())`",
    ),
    Advice(
        "reflection_pad[13]d_backward_(out_)?cuda",
        "ReflectionPad1d or 3d",
        "pad by `torch.cat` of flipped slices, or as 2-D",
        backward=True,
    ),
    Advice(
        "replication_pad[123]d_backward_(out_)?cuda",
        "ReplicationPad",
        _FUNCTIONAL.format(op="`torch.nn.functional.pad(mode='replicate')`", since="2.7"),
        backward=True,
    ),
    Advice(
        "scatter_cuda_",
        "Tensor.scatter",
        "`scatter_reduce` with 'sum', or indices that occur once and `index_put`",
    ),
    Advice(
        "scatter_reduce_(cuda_kernel|cuda_prod_|mps)",
        "scatter with reduce, or scatter_reduce('prod')",
        "`scatter_reduce` with 'sum' or 'mean'; a product as `exp` of a sum of logarithms",
    ),
    Advice(
        "_histc_cuda( with floating point input)?",
        "histc of floating point",
        "`torch.bucketize` and `torch.bincount` without weights, or run it on the CPU",
    ),
    Advice("_bincount_cuda", "bincount with weights", "`torch.zeros(n).index_add(0, index, weights)`"),
    Advice("median CUDA with indices output", "median with indices", _SORT),
    Advice("kthvalue MPS", "kthvalue on MPS", "`torch.sort(...)` and take the element and its index"),
    Advice(
        "upsample_linear1d_backward_(out_)?cuda",
        f"{_INTERPOLATE}(mode='linear')",
        "the same as 2-D: `x.unsqueeze(2)`, mode='bilinear'",
        backward=True,
    ),
    Advice(
        "upsample_bilinear2d_backward_(out_)?cuda",
        f"{_INTERPOLATE}(mode='bilinear')",
        _FUNCTIONAL.format(op=f"`{_INTERPOLATE}`", since="2.7"),
        backward=True,
    ),
    Advice(
        "upsample_trilinear3d_backward_(out_)?cuda",
        f"{_INTERPOLATE}(mode='trilinear')",
        _FUNCTIONAL.format(op=f"`{_INTERPOLATE}`", since="2.11"),
        backward=True,
    ),
    Advice(
        "upsample_bicubic2d_backward_(out_)?cuda",
        f"{_INTERPOLATE}(mode='bicubic')",
        _FUNCTIONAL.format(op=f"`{_INTERPOLATE}`", since="2.15") + "; before, use mode='bilinear'",
        backward=True,
    ),
    Advice(
        "upsample_(bilinear2d|bicubic2d)_aa_backward_(out_)?cuda",
        f"{_INTERPOLATE}(antialias=True)",
        "`antialias=False`, with a blur by `conv2d` before it",
        backward=True,
    ),
    Advice("upsample_.*backward.*", "interpolation on MPS", "run it on the CPU", backward=True),
)


def advice_for(name: str) -> Advice | None:
    """Return the advice about the op of that name in torch's error; None when there is none."""
    for advice in ADVICE:
        if re.fullmatch(advice.pattern, name):
            return advice
    return None


# Ops with a deterministic kernel that `use_deterministic_algorithms(True)` selects: they read
# `deterministicAlgorithms()` in the libraries of 2.15.0.
SWITCHABLE = frozenset(
    (
        "convolution", "convolution_backward", "cudnn_convolution", "index_put", "_index_put_impl", "put",
        "index_copy", "scatter", "scatter_add", "scatter_reduce", "cumsum", "index_add",
        "embedding_dense_backward", "embedding_backward", "reflection_pad2d_backward", "bmm",
        "_flash_attention_backward", "_efficient_attention_backward", "_cudnn_attention_backward",
        "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
        "_scaled_dot_product_cudnn_attention_backward",
    )
)  # fmt: skip


_CONTROL = (
    "run it under control (`samebits run --deterministic`, `samebits.deterministic()`), which has a "
    "deterministic kernel for it from torch 2.9 on; without control, "
)
_SWITCH = "`torch.use_deterministic_algorithms(True)` or `--deterministic`: torch then takes another kernel"

# Suffixes that torch adds to the name of an op in its error, by device.
_ALERT_SUFFIXES = {
    "cuda": (
        "_cuda", "_out_cuda", "_cuda_", "_cuda_kernel", "_cuda_prod_", "_gpu", "_out_cuda_template",
        " CUDA with indices output",
    ),
    "mps": ("_mps", " MPS"),
    "cpu": ("", "_out", "_"),
}  # fmt: skip


def remedy_for(op: str, device: str) -> str:
    """Return a remedy for an op that gives different bits for the same inputs, empty when none is known.

    Args:
        op: such as `aten::index_add_.default`.
        device: the type of device that it ran on, such as `cuda`.
    """
    namespace, _, rest = op.partition("::")
    name = rest.partition(".")[0].removesuffix("_")
    if namespace != "aten":
        return ""
    if name == "put":
        return f"{_SWITCH}; it takes `accumulate=True` only"
    if name.startswith("_cudnn_rnn"):
        return "set the environment variable CUBLAS_WORKSPACE_CONFIG=:4096:2, or run the layer on the CPU"
    for stem in (name, name.lstrip("_"), f"_{name}"):
        for suffix in _ALERT_SUFFIXES.get(device, ("",)):
            advice = advice_for(stem + suffix)
            if advice is not None:
                way = _CONTROL if advice.ours and device == "cuda" else ""
                return f"{advice.op}: {way}{advice.instead}"
    if name in SWITCHABLE:
        return _SWITCH
    return ""


# `Context::alertNotDeterministic`, aten/src/ATen/Context.cpp; the same text in torch/_prims_common.
_ERROR = re.compile(r"^(?P<name>.+?) does not have a deterministic implementation, but you set")
_ALLOW = (
    "or allow it for a few lines: "
    "`with samebits.deterministic(all_switches=False, switches={'deterministic-algorithms': 'off'}):`"
)


def explain(error: BaseException) -> str | None:
    """Explain torch's error: the op, its line, and the replacement.

    Args:
        error: any exception; its causes are examined too.

    Returns:
        One line, or None when the error is not about deterministic algorithms.
    """
    for link in _chain(error):
        match = _ERROR.match(str(link)) if isinstance(link, RuntimeError) else None
        if match is not None:
            return _explanation(match["name"], _site_of_error(link))
    return None


def _site_of_error(error: BaseException) -> Site | None:
    """Return the innermost line of the user's code in the traceback, else the innermost line of a library."""
    ranks = FrameRanks()
    best: tuple[int, TracebackType] | None = None
    trace = error.__traceback__
    while trace is not None:
        rank = ranks.of(trace.tb_frame)
        if rank in (USER, LIBRARY) and (best is None or rank >= best[0]):
            best = (rank, trace)
        trace = trace.tb_next
    return None if best is None else site_of(best[1].tb_frame.f_code, best[1].tb_lineno)


def _explanation(name: str, site: Site | None) -> str:
    advice = advice_for(name)
    where = "" if site is None else f" at {site.file}:{site.line}"
    lacks = "has no deterministic implementation"
    if advice is None:
        return f"{name}{where} {lacks}, and samebits does not allow it; use another op, {_ALLOW}"
    part = "the backward pass of " if advice.backward else ""
    return f"{part}{advice.op} ({name}){where} {lacks}; use this instead: {advice.instead}; {_ALLOW}"


def _chain(error: BaseException) -> list[BaseException]:
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in links:
        links.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return links


class ErrorExplainer:
    """Adds the explanation after the traceback of an error that ends the script."""

    def __init__(self) -> None:
        self._before = sys.excepthook
        self._on = False

    def install(self) -> None:
        """Begin."""
        self._before = sys.excepthook
        self._on = True
        sys.excepthook = self._hook

    def pause(self) -> None:
        """Stop explaining errors."""
        self._on = False

    def remove(self) -> None:
        """Put back the earlier hook; one that was set on top of this stays, and still calls this."""
        self._on = False
        if sys.excepthook == self._hook:
            sys.excepthook = self._before

    def _hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._before(kind, error, trace)
        text = explain(error) if self._on else None
        if text is not None:
            print(f"samebits: {text}", file=sys.stderr)
