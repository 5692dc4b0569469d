"""Ops that torch composes in another way on a GPU than on the CPU: here they are composed as on the CPU.

`F.dropout` is one op on a GPU, `native_dropout`, and three on the CPU, which round elsewhere
(ATen/native/Dropout.cpp, 2.13.0). `F.scaled_dot_product_attention` asks the device which kernel is the best
(ATen/native/transformers/attention.cpp, 2.13.0), and the CPU's answer is the one that counts here.
`F.rms_norm` is one op on a GPU. Recurrent layers are in recurrent_layers.py. Tensors in CPU memory are left
to torch.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from samebits._torch.dispatch_key import outside
from samebits._torch.portable import MATH_ATTENTION, fused_attention_choice, outside_modes
from samebits.portable import lstm_layers, recurrent_layers
from samebits.portable._tensors import raised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    Kernel = Callable[..., Any]


def choices() -> dict[str, Kernel]:
    """Return the ops, each called with torch's composition of a call and then with the arguments."""
    found = {name: _on_gpu(compute) for name, compute in compositions().items()}
    found[lstm_layers.OP] = _steps_at_once(found[lstm_layers.OP])
    return found


def compositions() -> dict[str, Callable[..., Any]]:
    """Return what these ops are on the CPU: functions of their arguments."""
    libraries = (f"_use_{library}_ctc_loss" for library in ("cudnn", "miopen"))
    return {
        "dropout": _dropout,
        "log_softmax.int": functools.partial(_softmax, "_log_softmax"),
        "rms_norm": _rms_norm,
        "scaled_dot_product_attention": _attention,
        "softmax.int": functools.partial(_softmax, "_softmax"),
        **{f"{name}{form}": _never for name in libraries for form in ("", ".Tensor")},
        **recurrent_layers.layers(),
    }


def _on_gpu(compute: Callable[..., Any]) -> Kernel:
    def run(otherwise: Callable[[], Any], x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return otherwise() if x.is_cpu or x.is_nested else compute(x, *args, **kwargs)

    return run


def _steps_at_once(otherwise: Kernel) -> Kernel:
    def run(compose: Callable[[], Any], *args: Any) -> Any:
        return lstm_layers.run_or(lambda: otherwise(compose, *args), *args)

    return run


def _never(*_: Any) -> bool:
    return False


def _dropout(input: Tensor, p: float, train: bool) -> Tensor:  # noqa: A002, FBT001 - as in torch
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not train or p == 0 or not input.numel():
        return input
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"dropout of {input.dtype}: expected floating-point numbers")
    if p == 1:
        return input * input.new_zeros(())
    noise = torch.empty_like(input, requires_grad=False).bernoulli_(1 - p)
    torch.ops.aten.div_.Scalar(noise, 1 - p)
    return input * noise


def _softmax(name: str, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    given: Tensor = getattr(torch.ops.aten, name)(x if dtype is None else x.to(dtype), dim, False)
    return given


def _rms_norm(
    input: Tensor,  # noqa: A002 - the name of torch
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, got an input of size {list(input.shape)}")
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(f"Expected weight of the shape {list(shape)}, got {list(weight.shape)}")
    dims = list(range(input.dim() - len(shape), input.dim()))
    x = raised(input)
    squares = x.pow(2).mean(dims, keepdim=True)
    torch.ops.aten.add_.Scalar(squares, torch.finfo(x.dtype).eps if eps is None else eps)
    scaled = x * squares.rsqrt()
    return (scaled if weight is None else scaled * weight).type_as(input)


class _Attention(NamedTuple):
    """The arguments of `aten::scaled_dot_product_attention`."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False


def _attention(*args: Any, **kwargs: Any) -> Any:
    call = _Attention(*args, **kwargs)
    aten: Any = torch.ops.aten
    query, key, value, mask, dropout_p, is_causal, scale, enable_gqa = call
    if mask is not None and is_causal:
        raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
    mask = _as_added(mask, query.dtype)
    if _is_fused_on_cpu(call):
        if query.dim() == 3:  # one sample
            whole = [each if each is None else each.unsqueeze(0) for each in (query, key, value)]
            rest = None if mask is None else mask.unsqueeze(0) if mask.dim() == 3 else mask
            return _attention(*whole, rest, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa).squeeze(
                0
            )
        fused = aten._scaled_dot_product_flash_attention_for_cpu
        return fused(query, key, value, dropout_p, is_causal, attn_mask=mask, scale=scale)[0]
    return aten._scaled_dot_product_attention_math(
        query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def _is_fused_on_cpu(call: _Attention) -> bool:
    """Tell whether torch would compute the attention of such tensors in one op on the CPU.

    Raises:
        RuntimeError: where their sizes do not go together, as torch says it.
    """
    tensors = [None if each is None else _in_cpu_memory(each) for each in call[:4]]
    with outside(), outside_modes():
        chosen = fused_attention_choice(*tensors, *call[4:6], scale=call.scale, enable_gqa=call.enable_gqa)
    return chosen != MATH_ATTENTION


def _in_cpu_memory(tensor: Tensor) -> Tensor:
    followed = tensor.requires_grad and tensor.is_floating_point()
    with outside(), outside_modes():
        return torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu", requires_grad=followed
        )


def _as_added(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return a mask as what is added to the scores."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask.logical_not(), -torch.inf)
