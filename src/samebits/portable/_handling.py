"""Calls of handlers: the checks of arguments, and the `_foreach_` ops, which repeat the op of one tensor.

A `_foreach_` op runs that op for each tensor of the lists in turn, as torch does on the CPU
(ATen/native/ForeachOpsKernels.cpp, the `_slow` functions). So a loop over tensors, a `_foreach_` op and an
optimizer's `foreach=True` give the same bits.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from samebits._runtime.frames import pass_on
from samebits._torch.core import is_alert, is_random, lacks_kernel
from samebits._torch.portable import (
    arguments_of,
    asks_compiler,
    gives_no_contents,
    is_mutable,
    outside_modes,
    overload_name,
    parts_of,
    returns_nothing,
    schema_name,
    tracer,
    without_tracer,
)
from samebits.errors import SamebitsError
from samebits.portable._devices import placed, tensors_in
from samebits.portable._exact import base_name
from samebits.portable._refusals import refuse_arguments, refuse_tensor
from samebits.portable._scan import (
    COMPLEX,
    FLOATS,
    LOW,
    VIRTUAL,
    ComplexError,
    UnfitError,
    call_signature,
    scan,
    scan_named,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from samebits.portable._registry import Handler

    Repeat = Callable[[Handler, tuple[Any, ...], dict[str, Any]], Any]

_PREFIX = "_foreach_"
_OVERLOADS = {
    "default": ("default",),
    "Scalar": ("Tensor_Scalar", "Scalar", "default"),
    "ScalarList": ("Tensor_Scalar", "Scalar", "default"),
    "List": ("Tensor", "Tensor_Tensor", "default"),
    "Tensor": ("Tensor", "default"),
    "ScalarAndTensor": ("Scalar",),
}
_CLAMPS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_HAVE_VALUE = ("addcmul", "addcdiv")
_NAMES = frozenset(
    word
    for line in (
        "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone copy cos cosh div erf erfc",
        "exp expm1 floor frac lerp lgamma log log10 log1p log2 max maximum minimum mm mul neg norm pow",
        "reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc zero",
    )
    for word in line.split()
)
_LISTS = ("List[Tensor]", "List[number]")


def single_op(op: Any) -> Any | None:
    """Return the op of one tensor that a `_foreach_` op repeats, None if there is none.

    An in-place op may repeat an op that has no in-place form, such as `maximum`.

    Args:
        op: any op.
    """
    packet_name, overload = schema_name(op).partition(_PREFIX)[2], overload_name(op)
    base = packet_name.rstrip("_")
    in_place = packet_name[len(base) :]
    if base not in _NAMES or overload not in _OVERLOADS:
        return None
    if base in {"copy", "zero"} and not in_place:
        return None
    if base == "norm":
        return torch.ops.aten.linalg_vector_norm.default
    if overload.startswith("Scalar"):
        base = _CLAMPS.get(base, base)
    packets = [getattr(torch.ops.aten, name, None) for name in dict.fromkeys((base + in_place, base))]
    overloads = _OVERLOADS[overload]
    candidates = (getattr(packet, candidate, None) for packet in packets for candidate in overloads)
    return next((candidate for candidate in candidates if candidate is not None), None)


def for_each(op: Any) -> Repeat:
    """Return a function that repeats the op of one tensor as a `_foreach_` op does.

    Args:
        op: the `_foreach_` op.
    """
    arguments = arguments_of(op)
    listed = [str(argument.type) in _LISTS for argument in arguments]
    name = schema_name(op).partition(_PREFIX)[2]
    gives_nothing = returns_nothing(op)
    single: Any = single_op(op)
    copies = gives_nothing and not is_mutable(single)

    def repeat(function: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name.startswith(_HAVE_VALUE):
            args = _with_value_list(args, kwargs)
        count = next(len(arg) for arg, many in zip(args, listed, strict=False) if many)
        results = []
        for i in range(count):
            given = [arg[i] if _is_list(arg) else arg for arg in args]
            result = _call(function, name, given, kwargs)
            results.append(given[0].copy_(result) if copies else result)
        return None if gives_nothing else results

    return repeat


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _with_value_list(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments with the factor of addcmul or addcdiv last; a tensor of factors becomes a list."""
    value = kwargs.pop("value", kwargs.pop("scalars", args[3] if len(args) > 3 else 1))
    return (*args[:3], value.tolist() if isinstance(value, torch.Tensor) else value)


def _call(function: Handler, name: str, given: list[Any], kwargs: dict[str, Any]) -> Any:
    if name.startswith(_HAVE_VALUE):
        return function(*given[:3], value=given[3])
    if name.startswith("norm"):
        order = given[1] if len(given) > 1 else kwargs.get("ord", 2)
        dtype = given[2] if len(given) > 2 else kwargs.get("dtype")
        return function(given[0], order, None, False, dtype=dtype)
    return function(*given, **kwargs)


_MOST_SIGNATURES = 512  # of calls, for each op
_TENSOR = torch.Tensor
_PLAIN_INDICES = frozenset({torch.int64, torch.bool})
# Torch checks these on the CPU only, or only where tensors have contents.
_LAX = frozenset(
    {
        *("_embedding_bag", "_log_softmax", "_softmax", "binary_cross_entropy", "nll_loss2d_forward"),
        *("index_add", "index_reduce", "put", "scatter_add", "scatter_reduce"),
    }
)
_FEW_VALUES = 1 << 18  # the import takes a second
_LIKE_TORCH = (RuntimeError, IndexError, ValueError, MemoryError)


@functools.cache
def handled(op: Any, handler: Handler, low: Handler, *, integers: bool) -> Callable[..., Any]:
    """Return the plan (_dispatch.py) of an op that has a handler.

    Args:
        op: the `OpOverload`.
        handler: computes it in float32 and float64.
        low: computes it where float16 or bfloat16 is among the dtypes.
        integers: whether torch's own op is exact where there is no float.
    """

    def choose(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handler:
        bits = bits_of(op, args, kwargs)
        if bits & VIRTUAL or (integers and not bits & FLOATS and not has_float_number(args, kwargs)):
            return op  # type: ignore[no-any-return]
        check(op, args, kwargs)
        compute = placed(op, low if bits & LOW else handler, args, kwargs)
        if compute is None:
            refuse_devices(op, args, kwargs)
        return compute

    return chosen_once(op, choose)


def chosen_once(op: Any, choose: Callable[[tuple[Any, ...], dict[str, Any]], Handler]) -> Callable[..., Any]:
    """Return the plan that chooses a handler at the first call of each signature.

    Args:
        op: the op.
        choose: returns the handler for the arguments, or `op` itself for torch's own.
    """
    known: dict[Hashable, Handler] = {}

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        tracing = tracer()
        if tracing is not None:
            return _traced(tracing, op, (args, kwargs), mode)
        like = call_signature(args, kwargs)
        compute = known.get(like)
        if compute is None:
            compute = choose(args, kwargs)
            if len(known) >= _MOST_SIGNATURES:
                known.clear()
            known[like] = compute
        return op(*args, **kwargs) if compute is op else _computed(op, compute, args, kwargs)

    return run


def _traced(tracing: Any, op: Any, given: tuple[tuple[Any, ...], dict[str, Any]], mode: Any) -> Any:
    """Run an op while torch traces: the graph gets the op itself, and its parts are computed.

    Args:
        tracing: torch's mode.
        op: the `OpOverload`.
        given: its arguments, and those by name.
        mode: of portable mode, entered again for the ops that `tracing` calls.
    """
    args, kwargs = given
    if gives_no_contents(tracing):
        return op(*args, **kwargs)
    with without_tracer(tracing), mode:
        return tracing.__torch_dispatch__(op, (), args, kwargs)


def _computed(op: Any, handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a handler; where it fails, raise the error that torch raises.

    Args:
        op: the `OpOverload` that it computes.
        handler: computes.
        args: of the op, checked.
        kwargs: those by name.
    """
    try:
        return handler(*args, **kwargs)
    except SamebitsError:
        raise
    except Exception as error:  # noqa: BLE001 - a mistake of the handler is no error of the script
        pass_on(error)
        raise_as_torch(op, args, kwargs, error)


def bits_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return what `scan` says about all arguments.

    Raises:
        SamebitsError: for one that portable mode has no values for.
        ComplexError: for a complex one.
    """
    bits = all_bits_of(op, args, kwargs)
    if bits & COMPLEX:
        raise ComplexError
    return bits


def all_bits_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the same, for complex arguments too.

    Raises:
        SamebitsError: for one that portable mode has no values for.
    """
    try:
        return scan(args) | scan_named(kwargs) if kwargs else scan(args)
    except UnfitError as unfit:
        raise refuse_tensor(op, str(unfit)) from None


def decomposed(op: Any) -> Callable[..., Any]:
    """Return the plan of an op that consists of others, which come to portable mode one by one."""
    parts = parts_of(op)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        with mode:
            return parts(*args, **kwargs)

    return run


def has_float_number(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether a Python float is among the arguments. Lists are not searched."""
    return float in map(type, args) or float in map(type, kwargs.values())


def check(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what torch raises for arguments of these shapes and dtypes.

    Args:
        op: the `OpOverload`.
        args: its arguments.
        kwargs: those by name.
    """
    tensors = [*tensors_in((args, tuple(kwargs.values())))]
    if not tensors and kwargs.get("dtype") in {None, torch.float32, torch.float64}:
        return
    sure = (
        bool(tensors) and base_name(op) not in _LAX and not _in_doubt(tensors) and not _is_slow(op, tensors)
    )
    if not sure or not _passes_without_contents(op, args, kwargs):
        _try(op, args, kwargs)


def refuse_devices(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
    """Raise what torch raises for tensors that lie apart. If torch takes them, refuse them.

    Args:
        op: the `OpOverload`.
        args: its arguments.
        kwargs: those by name.
    """
    _try(op, args, kwargs)
    found = sorted({str(each.device) for each in tensors_in((args, tuple(kwargs.values())))})
    raise refuse_tensor(op, f"tensors on {' and '.join(found)}")


def raise_as_torch(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> NoReturn:
    """Raise what torch raises for these arguments, whose handler failed. If torch takes them, refuse them.

    Args:
        op: the `OpOverload`.
        args: its arguments.
        kwargs: those by name.
        error: of the handler.
    """
    try:
        _try(op, args, kwargs)
    except Exception as own:
        raise own from None
    if isinstance(error, _LIKE_TORCH):
        raise error
    raise refuse_arguments(op, error) from error


def _passes_without_contents(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether the op takes the arguments on the meta device. It lacks some ops that the CPU has."""
    named = _mapped(kwargs, _without_contents)
    if named.get("device") is not None:
        named["device"] = "meta"  # torch would draw there
    try:
        with outside_modes():
            op(*_mapped(args, _without_contents), **named)
    except Exception as error:  # noqa: BLE001 - whatever torch says
        pass_on(error)
        return False
    return True


def _is_slow(op: Any, tensors: list[torch.Tensor]) -> bool:
    """Tell whether it is sooner to compute than to ask the meta device, which imports the compiler."""
    return asks_compiler(op) and sum(tensor.numel() for tensor in tensors) < _FEW_VALUES


def _in_doubt(tensors: list[torch.Tensor]) -> bool:
    """Tell whether torch may check dtypes here that it does not check on the meta device."""
    if not tensors[0].dtype.is_floating_point:
        return True
    dtypes = {tensor.dtype for tensor in tensors}
    floats = {dtype for dtype in dtypes if dtype.is_floating_point}
    return len(floats) != 1 or not dtypes - floats <= _PLAIN_INDICES


def _try(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let torch compute on copies in CPU memory, only to see its errors.

    On a GPU a wrong index would end the process's use of the device, and some of these ops have no kernel.
    Others have kernels for more dtypes there, such as `histc` for integers.
    """
    on_gpu = any(tensor.is_cuda for tensor in tensors_in((args, tuple(kwargs.values()))))
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    # Other threads may draw meanwhile: the generator is put back only if the op draws.
    same_draws = torch.random.fork_rng(devices=[]) if is_random(op) else contextlib.nullcontext()
    with same_draws, outside_modes():
        try:
            op(*_mapped(args, _copied), **_mapped(kwargs, _copied))
        except RuntimeError as error:
            # Neither is an error of these arguments.
            if not is_alert(error) and not (on_gpu and lacks_kernel(error)):
                raise


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone() if tensor.is_cpu else tensor.cpu()


def _without_contents(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, _TENSOR):
        return change(value)
    if isinstance(value, torch.Generator):
        return None
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    return type(value)(_mapped(item, change) for item in value) if type(value) in {list, tuple} else value
