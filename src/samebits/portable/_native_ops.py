"""Ops that C code computes where torch's dispatcher calls them (bindings/ops), without Python on the way.

Each does what the handler of its op does (portable/ops), for plain tensors of float32 and float64, and leaves
the rest to it. Where something is missing that the C code needs, there are none.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.dispatch_key import Switch, slow_switch, switch_of
from samebits._torch.portable import function_of, op_named
from samebits._torch.tensor_access import functions, numbers, tensor_offset
from samebits.portable.backends.library import load
from samebits.portable.kernels import activations, attention, elementwise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Table = dict[str, tuple[str, int]]

ABI = 1


def native_ops() -> frozenset[str]:
    """Return the ops that have C code here, such as `aten::mm`."""
    return frozenset() if _module() is None else frozenset(f"aten::{name}" for name in _table())


def native_kernel(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return the C code of an op.

    Args:
        name: one of `native_ops`.
        otherwise: called for what the C code leaves.
    """
    module: Any = _module()
    own = function_of(op_named(name))
    kernel: Callable[..., Any] = module.Op(*_table()[name.removeprefix("aten::")], own, otherwise).call
    return kernel


@functools.cache
def _module() -> Any:
    """Return the C module, with all that it needs, or None."""
    kernels, addresses, offset = load(), functions(), tensor_offset()
    if kernels is None or addresses is None or offset is None:
        return None
    try:
        module: Any = importlib.import_module("samebits._ops")
    except ImportError:
        return None
    if module.ABI != ABI:
        return None
    classes = (torch.Tensor, torch.nn.Parameter, torch.float32, torch.float64)
    module.bind(addresses | kernels.addresses(), numbers(), offset, classes)
    return module


@contextlib.contextmanager
def left_to_handlers() -> Iterator[None]:
    """Return a context in which handlers compute all ops, in all threads. For their tests."""
    module = _module()
    if module is not None:
        module.set_off(True)
    try:
        yield
    finally:
        if module is not None:
            module.set_off(False)


@functools.cache
def switch() -> Switch:
    """Return what switches this process's threads to torch's own kernels and back."""
    module = _module()
    return (module and switch_of(module)) or slow_switch()


@functools.cache
def _table() -> Table:
    """Return the function of C for each op, and the number that it gets."""
    table: Table = {
        "relu": ("relu", 0),
        "relu_": ("relu_in_place", 0),
        "sqrt": ("root", 0),
        "mm": ("multiply", 2),
        "bmm": ("multiply", 3),
        "addmm": ("multiply_and_add", 2),
        "baddbmm": ("multiply_and_add", 3),
        "sum": ("sum", 0),
        "sum.dim_IntList": ("sum", 0),
        "mean": ("sum", 1),
        "mean.dim": ("sum", 1),
        "convolution": ("convolution", 0),
        "convolution_backward": ("convolution_gradients", 0),
        "native_layer_norm": ("layer_norm", 0),
        "native_group_norm": ("group_norm", 0),
        "native_group_norm_backward": ("group_norm_gradient", 0),
        "native_batch_norm": ("batch_norm", 0),
        "_native_batch_norm_legit": ("batch_norm", 0),
        "_native_batch_norm_legit_no_training": ("batch_norm", 1),
        "avg_pool2d": ("average", 0),
        "avg_pool2d_backward": ("average_gradient", 0),
        "upsample_nearest2d": ("nearest", 0),
        "upsample_nearest2d_backward": ("nearest_gradient", 0),
        "copy_": ("copy", 0),
        "neg": ("move", 1),  # of complex numbers there is a handler
        **dict.fromkeys(("clone", "empty_like", "zero_", "zeros_like"), ("move", 0)),
    }
    return table | _arithmetic() | _updates() | _functions() | _losses() | _softmax()


def _arithmetic() -> Table:
    scaled = activations.NAMES.index("add_scaled") << 8
    table: Table = {}
    for code, name in enumerate(("add", "sub", "mul", "div")):
        table[f"{name}.Tensor"] = ("binary", scaled | code)
        table[f"{name}_.Tensor"] = ("binary_in_place", scaled | code)
    return table


def _updates() -> Table:
    number = activations.NAMES.index
    combined = {f"{name}_": ("add_combined", number(name)) for name in ("addcmul", "addcdiv")}
    return {"lerp_.Scalar": ("go_towards", number("lerp"))} | combined


def _functions() -> Table:
    own = {"ndtr", "log_ndtr", "logit"}  # of other names, or with more parameters
    unary = {name: ("unary", code) for code, name in enumerate(elementwise.UNARY) if name not in own}
    pairs = ("tanh_backward", "sigmoid_backward", "atan2", "hypot", "logaddexp", "logaddexp2")
    binary = {name: ("pair", elementwise.BINARY.index(name)) for name in pairs}
    functions = ("hardsigmoid", "hardswish", "gelu", "silu", "mish")
    names = [each for name in functions for each in (name, f"{name}_backward")]
    return unary | binary | {name: ("activation", activations.NAMES.index(name)) for name in names}


def _losses() -> Table:
    numbers_of = {name: code for code, name in enumerate(activations.NAMES)}
    return {
        "mse_loss": ("loss", numbers_of["mse"]),
        "mse_loss_backward": ("loss_gradient", 2 << 24 | numbers_of["mse_backward"]),
    }


def _softmax() -> Table:
    forward, log, backward, log_backward = range(len(attention.NAMES))
    return {
        "_softmax": ("softmax", forward),
        "_log_softmax": ("softmax", log),
        "_softmax_backward_data": ("softmax_gradient", backward),
        "_log_softmax_backward_data": ("softmax_gradient", log_backward),
    }
