"""Ops that only CUDA has, computed by ops that the CPU has.

The arguments are CPU tensors in the memory of the device's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

RNN_FUNCTIONS = ("rnn_relu", "rnn_tanh", "lstm", "gru")  # by the number that cuDNN gives them
LSTM = 2


def refuse_dropout(probability: float) -> None:
    """Random numbers inside an op: the fake device draws none."""
    if probability:
        raise NotImplementedError("the fake device has no gradients of dropout between recurrent layers")


def convolution(
    self: Any, weight: Any, padding: Any, stride: Any, dilation: Any, groups: int, *_: Any
) -> torch.Tensor:
    """`aten::cudnn_convolution`."""
    none = [0] * len(stride)
    return torch.convolution(self, weight, None, stride, padding, dilation, False, none, groups)


def transposed_convolution(
    self: Any,
    weight: Any,
    padding: Any,
    output_padding: Any,
    stride: Any,
    dilation: Any,
    groups: int,
    *_: Any,
) -> torch.Tensor:
    """`aten::cudnn_convolution_transpose`."""
    return torch.convolution(self, weight, None, stride, padding, dilation, True, output_padding, groups)


def depthwise_convolution(
    self: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any
) -> torch.Tensor:
    """`aten::_conv_depthwise2d` and `aten::conv_depthwise3d`."""
    none = [0] * len(stride)
    return torch.convolution(self, weight, bias, stride, padding, dilation, False, none, self.size(1))


def batch_norm(
    self: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    """`aten::cudnn_batch_norm`."""
    found = torch.native_batch_norm(self, weight, bias, mean, var, training, momentum, eps)
    return (*found, torch.empty(0, dtype=torch.uint8))


def batch_norm_backward(
    self: Any,
    grad: Any,
    weight: Any,
    mean: Any,
    var: Any,
    saved_mean: Any,
    saved_var: Any,
    eps: float,
    *_: Any,
) -> Any:
    """`aten::cudnn_batch_norm_backward`."""
    backward = torch.ops.aten.native_batch_norm_backward
    return backward(grad, self, weight, mean, var, saved_mean, saved_var, True, eps, [True, True, True])


def histogram(x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    """`aten::histc`, which the CPU does not have for integers."""
    whole = not x.dtype.is_floating_point
    return torch.histc(x.double(), bins, low, high).to(x.dtype) if whole else torch.histc(x, bins, low, high)


def rms_norm_backward(
    gradient: Any, x: Any, normalized: Any, rstd: Any, weight: Any, wanted: Any
) -> tuple[Any, Any]:
    """In double precision; `rstd` is what the forward pass divided by, as its reciprocal."""
    axes = tuple(range(x.dim() - len(normalized), x.dim()))
    scale = rstd.double().reshape(*x.shape[: axes[0]], *(1 for _ in axes))
    unit, given = x.double() * scale, gradient.double()
    weighted = given if weight is None else given * weight.double()
    inputs = scale * (weighted - unit * (weighted * unit).mean(axes, keepdim=True))
    weights = (given * unit).reshape(-1, *normalized).sum(0)
    return (
        inputs.to(x.dtype) if wanted[0] else None,
        weights.to(weight.dtype) if wanted[1] and weight is not None else None,
    )


@dataclass(frozen=True)
class Attention:
    """A call of scaled dot-product attention.

    Args:
        bias: added to the products; None for none.
        dropout: the probability of leaving out a weight.
        causal: whether later keys are left out.
        scale: of the products; None for the usual one.
        keys: dispatch keys of a place where no kernel runs, for gradients.
    """

    bias: Any
    dropout: float
    causal: bool
    scale: float | None
    keys: tuple[Any, Any]

    def forward(self, q: Any, k: Any, v: Any) -> tuple[Any, Any, Any]:
        """Output, logarithm of the sums, and the seed of the dropout."""
        seed = torch.randint(1 << 62, ())
        if self.dropout:
            return self._with_dropout(q, k, v, seed), q.new_zeros(q.shape[:-1]), seed
        op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return (*op(q, k, v, 0.0, self.causal, attn_mask=self.bias, scale=self.scale), seed)

    def backward(self, grad: Any, inputs: tuple[Any, Any, Any], forward: tuple[Any, Any, Any]) -> Any:
        """The gradients of q, k and v; `forward` is what `forward` gave."""
        if self.dropout:
            with torch._C._ForceDispatchKeyGuard(*self.keys), torch.enable_grad():
                leaves = [leaf_of(each) for each in inputs]
                return torch.autograd.grad(self._with_dropout(*leaves, forward[2]), leaves, grad)
        op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        out, sums, _ = forward
        return op(grad, *inputs, out, sums, 0.0, self.causal, attn_mask=self.bias, scale=self.scale)

    def _with_dropout(self, q: Any, k: Any, v: Any, seed: Any) -> Any:
        products = q @ k.transpose(-2, -1) * (q.size(-1) ** -0.5 if self.scale is None else self.scale)
        if self.causal:
            later = torch.ones(products.shape[-2:], dtype=torch.bool).triu(1)
            products = products.masked_fill(later, float("-inf"))
        weights = (products if self.bias is None else products + self.bias).softmax(-1)
        drawn = torch.rand(weights.shape, generator=torch.Generator().manual_seed(int(seed)))
        return weights * (drawn >= self.dropout) / (1 - self.dropout) @ v


class Attentions:
    """The kernels of CUDA for attention."""

    def __init__(self, keys: tuple[Any, Any]) -> None:
        self._keys = keys

    def efficient(
        self, q: Any, k: Any, v: Any, bias: Any, _sums: bool, dropout: float = 0.0, causal: bool = False,
        *, scale: Any = None,
    ) -> Any:  # fmt: skip
        """`aten::_scaled_dot_product_efficient_attention`."""
        out, sums, seed = Attention(bias, dropout, causal, scale, self._keys).forward(q, k, v)
        return out, sums, seed, torch.zeros_like(seed)

    def efficient_backward(
        self, grad: Any, q: Any, k: Any, v: Any, bias: Any, out: Any, sums: Any, seed: Any, _offset: Any,
        dropout: float, _mask: Any, causal: bool = False, *, scale: Any = None,
    ) -> Any:  # fmt: skip
        """`aten::_scaled_dot_product_efficient_attention_backward`; no gradient of a bias."""
        call = Attention(bias, dropout, causal, scale, self._keys)
        return (*call.backward(grad, (q, k, v), (out, sums, seed)), None)

    def flash(
        self, q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False, _mask: bool = False,
        *, scale: Any = None,
    ) -> Any:  # fmt: skip
        """`aten::_scaled_dot_product_flash_attention`."""
        out, sums, seed = Attention(None, dropout, causal, scale, self._keys).forward(q, k, v)
        return out, sums, None, None, q.size(2), k.size(2), seed, torch.zeros_like(seed), torch.empty(0)

    def flash_backward(
        self, grad: Any, q: Any, k: Any, v: Any, out: Any, sums: Any, _q: Any, _k: Any, _max_q: int,
        _max_k: int, dropout: float, causal: bool, seed: Any, _offset: Any, *, scale: Any = None,
    ) -> Any:  # fmt: skip
        """`aten::_scaled_dot_product_flash_attention_backward`."""
        return Attention(None, dropout, causal, scale, self._keys).backward(
            grad, (q, k, v), (out, sums, seed)
        )

    def cudnn(
        self, q: Any, k: Any, v: Any, bias: Any, _sums: bool, dropout: float = 0.0, causal: bool = False,
        _mask: bool = False, *, scale: Any = None,
    ) -> Any:  # fmt: skip
        """`aten::_scaled_dot_product_cudnn_attention`."""
        out, sums, seed = Attention(bias, dropout, causal, scale, self._keys).forward(q, k, v)
        return out, sums, None, None, q.size(2), k.size(2), seed, torch.zeros_like(seed), torch.empty(0)

    def cudnn_backward(
        self, grad: Any, q: Any, k: Any, v: Any, out: Any, sums: Any, seed: Any, _offset: Any, bias: Any,
        _q: Any, _k: Any, _max_q: int, _max_k: int, dropout: float, causal: bool, *, scale: Any = None,
    ) -> Any:  # fmt: skip
        """`aten::_scaled_dot_product_cudnn_attention_backward`."""
        bias = bias if bias is not None and bias.numel() else None
        return Attention(bias, dropout, causal, scale, self._keys).backward(
            grad, (q, k, v), (out, sums, seed)
        )


class Recurrent:
    """cuDNN's recurrent layers, by torch's for the CPU.

    Args:
        keys: dispatch keys of a place where no kernel runs, for gradients.
    """

    def __init__(self, keys: tuple[Any, Any]) -> None:
        self._keys = keys

    def forward(
        self, input: Any, weight: Any, stride: int, _buffer: Any, hx: Any, cx: Any, mode: int, _hidden: int,
        _projected: int, layers: int, batch_first: bool, dropout: float, train: bool, bidirectional: bool,
        batch_sizes: Any, *_: Any,
    ) -> Any:  # fmt: skip
        """`aten::_cudnn_rnn`."""
        options = (stride >= 4, layers, dropout, train, bidirectional)
        found = layer_outputs(mode, (input, hx, cx), weight, options, batch_first, batch_sizes)
        cy = found[2] if mode == LSTM else torch.empty(0)
        return found[0], found[1], cy, torch.empty(0, dtype=torch.uint8), torch.empty(0)

    def backward(
        self, input: Any, weight: Any, stride: int, _buffer: Any, hx: Any, cx: Any, _output: Any,
        grad_output: Any, grad_hy: Any, grad_cy: Any, mode: int, _hidden: int, _projected: int,
        layers: int, batch_first: bool, dropout: float, train: bool, bidirectional: bool,
        batch_sizes: Any, *_: Any,
    ) -> Any:  # fmt: skip
        """`aten::_cudnn_rnn_backward`: the forward pass again, with gradients."""
        refuse_dropout(dropout if train and layers > 1 else 0.0)
        options = (stride >= 4, layers, 0.0, train, bidirectional)
        with torch._C._ForceDispatchKeyGuard(*self._keys), torch.enable_grad():
            parts = [leaf_of(part) for part in (input, hx, cx)]
            weights = [leaf_of(each) for each in weight]
            outputs = layer_outputs(mode, parts, weights, options, batch_first, batch_sizes)
            grads = (grad_output, grad_hy, grad_cy)
            pairs = [(out, grad) for out, grad in zip(outputs, grads, strict=False) if grad is not None]
            wanted = [part for part in (*parts, *weights) if part is not None]
            given = [out for out, _ in pairs], wanted, [grad for _, grad in pairs]
            found = iter(torch.autograd.grad(*given, allow_unused=True))
        first = [None if part is None else next(found) for part in parts]
        return (*first, list(found))


def leaf_of(tensor: Any) -> Any:
    """A leaf of a graph with the same contents."""
    return None if tensor is None else tensor.detach().clone().requires_grad_()


def layer_outputs(
    mode: int, parts: Any, weights: Any, options: tuple[Any, ...], batch_first: bool, batch_sizes: Any
) -> Any:
    """What torch's layer gives: outputs, last hidden state, last cell state."""
    function = getattr(torch._VF, RNN_FUNCTIONS[mode])
    inputs, hx, cx = parts
    state = (hx, cx) if mode == LSTM else hx
    if batch_sizes:
        return function(inputs, torch.tensor(batch_sizes), state, list(weights), *options)
    return function(inputs, state, list(weights), *options, batch_first)


def flatten_weights(weights: Any, *_: Any) -> torch.Tensor:
    """`aten::_cudnn_rnn_flatten_weight`, but that the weights stay where they are."""
    return torch.cat([weight.reshape(-1) for weight in weights])


def cudnn_layer(mode: int) -> tuple[Any, Any]:
    """`aten::lstm.input` and `.data` or their like, as torch makes them of `aten::_cudnn_rnn`.

    torch's own asks cuDNN how it keeps weights, for which there must be a device.
    """

    def call(
        inputs: Any, hx: Any, weights: Any, options: tuple[Any, ...], batch_first: bool, sizes: Any
    ) -> Any:
        has_biases, layers, dropout, train, bidirectional = options
        hidden, cell = hx if mode == LSTM else (hx, None)
        stride = (4 if has_biases else 2) + (hidden.size(-1) != weights[1].size(-1))
        found = torch._cudnn_rnn(
            inputs, weights, stride, None, hidden, cell, mode, weights[1].size(-1), 0, layers, batch_first,
            dropout, train, bidirectional, sizes, None,
        )  # fmt: skip
        return found[:3] if mode == LSTM else found[:2]

    def of_input(inputs: Any, hx: Any, params: Any, *options: Any) -> Any:
        return call(inputs, hx, params, options[:-1], options[-1], [])

    def of_data(data: Any, batch_sizes: Any, hx: Any, params: Any, *options: Any) -> Any:
        return call(data, hx, params, options, False, batch_sizes.tolist())

    return of_input, of_data


def whole_layers() -> dict[str, Any]:
    """Compositions that are computed whole, for CUDA tensors only; by the names of ops in `aten`."""
    layers = {name: cudnn_layer(mode) for mode, name in enumerate(RNN_FUNCTIONS)}
    by_input = {f"{name}.input": of_input for name, (of_input, _) in layers.items()}
    return by_input | {f"{name}.data": of_data for name, (_, of_data) in layers.items()}


def translations() -> dict[str, Any]:
    """By the names of ops in `aten`; to be called where no kernel runs."""
    keys = (torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set())
    recurrent, attentions = Recurrent(keys), Attentions(keys)
    return {
        "cudnn_convolution": convolution,
        "cudnn_convolution_transpose": transposed_convolution,
        "_conv_depthwise2d": depthwise_convolution,
        "conv_depthwise3d": depthwise_convolution,
        "cudnn_batch_norm": batch_norm,
        "cudnn_batch_norm_backward": batch_norm_backward,
        "histc": histogram,
        "_fused_rms_norm_backward": rms_norm_backward,
        "_scaled_dot_product_efficient_attention": attentions.efficient,
        "_scaled_dot_product_efficient_attention_backward": attentions.efficient_backward,
        "_scaled_dot_product_flash_attention": attentions.flash,
        "_scaled_dot_product_flash_attention_backward": attentions.flash_backward,
        "_scaled_dot_product_cudnn_attention": attentions.cudnn,
        "_scaled_dot_product_cudnn_attention_backward": attentions.cudnn_backward,
        "_cudnn_rnn": recurrent.forward,
        "_cudnn_rnn_backward": recurrent.backward,
        "_cudnn_rnn_flatten_weight": flatten_weights,
        **{
            f"_use_{library}_ctc_loss{overload}": lambda *_: False
            for library in ("cudnn", "miopen")
            for overload in ("", ".Tensor")
        },
        "cudnn_grid_sampler": lambda image, grid: torch.grid_sampler_2d(image, grid, 0, 0, True),
    }
