"""Autocast on a GPU: the arguments of the same ops are converted, in the same way, as on the CPU.

torch has a list of ops for each kind of device (ATen/autocast_mode.cpp and autocast_mode.h, 2.13.0). They
differ in more than a hundred ops: `layer_norm` and `softmax` get float32 on a GPU only, `avg_pool3d` on the
CPU only. The CPU's list counts here ("Autocast" in docs/reference/portable-numerics.md). An op that a later
torch adds to it is refused on a GPU.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.autocast_kernels import CPU_CASTS, GPU_CASTS, CastOverrides, cast_ops
from samebits.portable._devices import CUDA, device_types, mapped, tensors_in
from samebits.portable._dispatch import is_portable
from samebits.portable._refusals import refuse_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import Tensor

    from samebits._torch.autocast_kernels import AutocastCall

    Kernel = Callable[..., Any]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


LOW = _names(
    """
    _convolution addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d linalg_vecdot linear matmul mm prelu scaled_dot_product_attention
    """
)
"""Ops whose arguments get the dtype of autocast. On a GPU torch has the same kernels for them."""

FULL = _names(
    """
    _grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d
    binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky cholesky_inverse cholesky_solve
    cosine_embedding_loss cross_entropy_loss ctc_loss fake_quantize_per_tensor_affine fft_fft fft_fft2
    fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft
    fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler grid_sampler_2d
    grid_sampler_3d hinge_embedding_loss huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex
    linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv
    linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_matrix_sqrth linalg_qr linalg_solve linalg_svd
    linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve margin_ranking_loss max_pool3d max_unpool2d
    max_unpool3d mse_loss multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward nanquantile
    nll_loss nll_loss2d orgqr ormqr pinverse poisson_nll_loss polar prod qr quantile reflection_pad1d
    reflection_pad2d replication_pad1d replication_pad2d replication_pad3d smooth_l1_loss soft_margin_loss
    stft svd trace triangular_solve triplet_margin_loss view_as_complex
    """
)
"""Ops whose arguments get float32."""

WIDEST = _names("cat index_copy stack")
"""Ops whose arguments get float32 if one of them is, and else the dtype of autocast."""

_PADDED = _names("conv1d.padding conv2d.padding conv3d.padding")
_CONVOLUTION = "convolution"


@functools.cache
def casts_as_on_cpu() -> CastOverrides:
    """Return the kernels for tensors on a GPU; none where torch knows no GPU."""
    if CUDA not in device_types():
        return CastOverrides({}, GPU_CASTS)
    return CastOverrides(casts(cast_ops(CPU_CASTS), cast_ops(GPU_CASTS)), GPU_CASTS)


def casts(on_cpu: Iterable[str], on_gpu: Iterable[str]) -> dict[str, Kernel]:
    """Return the kernels for the ops that need one on a GPU.

    Args:
        on_cpu: the ops whose arguments torch's autocast converts on the CPU.
        on_gpu: those on a GPU.
    """
    listed, elsewhere = frozenset(on_cpu), frozenset(on_gpu)
    chosen: dict[str, Kernel] = dict.fromkeys(elsewhere - listed, _left_alone)
    padding = _Padding()
    for name in listed:
        base = name.partition(".")[0]
        if base in FULL:
            chosen[name] = _full
        elif base in WIDEST:
            chosen[name] = _widest
        elif name in _PADDED:
            chosen[name] = padding.padded
        elif base not in LOW or name not in elsewhere:
            chosen[name] = _refused
    if _PADDED & listed:
        chosen[_CONVOLUTION] = padding.convolution
    return {name: _in_portable_mode(kernel) for name, kernel in chosen.items()}


def _in_portable_mode(kernel: Kernel) -> Kernel:
    def run(call: AutocastCall, *args: Any, **kwargs: Any) -> Any:
        return kernel(call, *args, **kwargs) if is_portable() else call.as_torch(*args, **kwargs)

    return run


def _left_alone(call: AutocastCall, *args: Any, **kwargs: Any) -> Any:
    return call.pass_on(*args, **kwargs)


def _refused(call: AutocastCall, *_: Any, **__: Any) -> Any:
    raise refuse_use(str(call.op).removeprefix("aten."), "under autocast on a GPU")


def _full(call: AutocastCall, *args: Any, **kwargs: Any) -> Any:
    return _called(call, torch.float32, args, kwargs)


def _widest(call: AutocastCall, *args: Any, **kwargs: Any) -> Any:
    low = widest = torch.get_autocast_dtype(CUDA)
    for tensor in filter(_is_cast, tensors_in((args, tuple(kwargs.values())))):
        if torch.float32 in {widest, tensor.dtype}:
            widest = torch.float32
        elif tensor.dtype != low:
            raise RuntimeError(
                f"expected tensors of {low} or torch.float32 under autocast, got {tensor.dtype}"
            )
    return _called(call, widest, args, kwargs)


def _called(call: AutocastCall, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def cast(value: Any) -> Any:
        return mapped(value, lambda tensor: tensor.to(dtype) if _is_cast(tensor) else tensor)

    return call.without_autocast(*map(cast, args), **{name: cast(value) for name, value in kwargs.items()})


def _is_cast(tensor: Tensor) -> bool:
    return tensor.is_cuda and tensor.is_floating_point() and tensor.dtype != torch.float64


class _Padding(threading.local):
    """The kernels of convolutions that pad by themselves, and of the one that they consist of."""

    active = False  # whether this thread is in the former

    def padded(self, call: AutocastCall, *args: Any, **kwargs: Any) -> Any:
        """Leave it to the convolution that it consists of, which uses torch's cache of converted weights.

        A weight that is used twice has to be converted once: the gradients of its copy are added before they
        are converted back. Whether its input is padded before or after makes no difference.
        """
        before, self.active = self.active, True
        try:
            return call.pass_on(*args, **kwargs)
        finally:
            self.active = before

    def convolution(self, call: AutocastCall, *args: Any, **kwargs: Any) -> Any:
        """Convert its arguments there only, as on the CPU."""
        return call.as_torch(*args, **kwargs) if self.active else call.pass_on(*args, **kwargs)
