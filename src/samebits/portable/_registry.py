"""The handlers of torch's ops: how they are declared, and what is derived from them.

A handler is declared where it is defined: `@handles("aten::mm")`, or `"aten::mm.dtype"` for an overload that
is not the default. It has the parameters of the op's schema. Three more handlers are derived from it: of the
in-place op (`mm_`), of the op with `out`, and for float16 and bfloat16.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from samebits._torch.portable import arguments_of, schema_name
from samebits.portable._tensors import LOW_PRECISION, raised

if TYPE_CHECKING:
    from types import ModuleType

Handler = Callable[..., Any]
Table = Mapping[str, Handler]
Function = TypeVar("Function", bound=Handler)
_OF_FACTORIES = ("dtype", "layout", "device", "pin_memory")
# Marks of functions.
_OPS, _SPARSE_OPS, _COMPLEX_OPS = "samebits_ops", "samebits_sparse_ops", "samebits_complex_ops"
_MAKES_HANDLERS = "samebits_makes_handlers"
_OWN_ROUNDING = "samebits_own_rounding"


def handles(*ops: str) -> Callable[[Function], Function]:
    """Declare that a function handles these ops: `aten::mm`, `aten::sum.dim_IntList`."""
    names = tuple(map(_in_aten, ops))
    return lambda handler: _marked(handler, _OPS, names)


def handles_sparse(*ops: str) -> Callable[[Function], Function]:
    """Declare that a function handles these ops where one of their tensors is sparse."""
    names = tuple(map(_in_aten, ops))
    return lambda handler: _marked(handler, _SPARSE_OPS, names)


def handles_complex(*ops: str) -> Callable[[Function], Function]:
    """Declare that a function handles these ops where a complex number is among what goes in or comes out.

    Its tensors are not lazily conjugated or negated.
    """
    names = tuple(map(_in_aten, ops))
    return lambda handler: _marked(handler, _COMPLEX_OPS, names)


def declares_handlers(make: Function) -> Function:
    """Declare the handlers that a function makes and returns by the names of their ops."""
    return _marked(make, _MAKES_HANDLERS, True)


def rounds_itself(handler: Function) -> Function:
    """Mark a handler that takes float16 and bfloat16 as they are, and rounds its results itself."""
    return _marked(handler, _OWN_ROUNDING, True)


def _marked(function: Function, mark: str, value: object) -> Function:
    setattr(function, mark, value)
    return function


def _in_aten(op: str) -> str:
    namespace, _, name = op.partition("::")
    if namespace != "aten":
        raise ValueError(f"{op} is not an op of aten")
    return name


def declared(module: ModuleType) -> dict[str, Handler]:
    """Return the handlers that a module declares, by the names of their ops without `aten::`.

    Raises:
        ValueError: if two of them have the same op.
    """
    table: dict[str, Handler] = {}
    for function in _functions(module):
        _add(table, dict.fromkeys(getattr(function, _OPS, ()), function))
        if hasattr(function, _MAKES_HANDLERS):
            _add(table, {_in_aten(op): handler for op, handler in function().items()})
    return table


def declared_sparse(modules: Iterable[ModuleType]) -> dict[str, Handler]:
    """Return the handlers for calls with a sparse tensor, by the names of their ops without `aten::`.

    Raises:
        ValueError: if two of them have the same op.
    """
    return _marked_with(_SPARSE_OPS, modules)


def declared_complex(modules: Iterable[ModuleType]) -> dict[str, Handler]:
    """Return the handlers for calls with complex numbers, by the names of their ops without `aten::`.

    Raises:
        ValueError: if two of them have the same op.
    """
    return _marked_with(_COMPLEX_OPS, modules)


def _marked_with(mark: str, modules: Iterable[ModuleType]) -> dict[str, Handler]:
    table: dict[str, Handler] = {}
    for module in modules:
        for function in _functions(module):
            _add(table, dict.fromkeys(getattr(function, mark, ()), function))
    return table


def declared_by(modules: Iterable[ModuleType]) -> Table:
    """Return the `declared` handlers of all these modules.

    Raises:
        ValueError: if two of them have the same op.
    """
    table: dict[str, Handler] = {}
    for module in modules:
        _add(table, declared(module))
    return table


def _functions(module: ModuleType) -> Iterator[Handler]:
    """Return the functions that a module defines, in the order of their definition."""
    for value in vars(module).values():
        if callable(value) and getattr(value, "__module__", None) == module.__name__:
            yield value


def _add(table: dict[str, Handler], more: Table) -> None:
    twice = table.keys() & more.keys()
    if twice:
        raise ValueError(f"two handlers for {sorted(twice)}")
    table.update(more)


class Handlers:
    """The handlers of ops by `OpOverload`, each found when it is first asked for: all of them take long.

    Args:
        table: names of ops to handlers.
        made: makes of each, and of the name of its op, the handler that is meant.
    """

    def __init__(self, table: Table, made: Callable[[Handler, str], Handler] | None = None) -> None:
        self._made = made or (lambda handler, _: handler)
        self._parts: dict[str, dict[str, Handler]] = {}
        for name, handler in table.items():
            self._parts.setdefault(name.partition(".")[0], {})[name] = handler
        self._found: dict[str, dict[Any, Handler]] = {}

    def get(self, op: Any) -> Handler | None:
        """Return the handler of an op, None if it has none.

        Args:
            op: an `OpOverload` of the namespace `aten`.
        """
        packet = schema_name(op).partition("::")[2]
        if packet not in self._found:
            self._found[packet] = self._resolved(packet, packet.removesuffix("_"))
        return self._found[packet].get(op)

    def all(self) -> dict[Any, Handler]:
        """Return the handlers of all ops."""
        return self._resolved(*self._parts)

    def _resolved(self, *packets: str) -> dict[Any, Handler]:
        named = {name: each for packet in packets for name, each in self._parts.get(packet, {}).items()}
        return resolve({name: self._made(handler, name) for name, handler in named.items()})


def resolve(table: Table) -> dict[Any, Handler]:
    """Return the handlers by `OpOverload`. Ops that this torch does not have are left out.

    Args:
        table: names of ops to handlers.
    """
    handlers: dict[Any, Handler] = {}
    for name, handler in table.items():
        op = _find(name)
        if op is not None:
            handlers[op] = handler
    for name, handler in table.items():
        for op, derived in _variants(name, handler):
            handlers.setdefault(op, derived)
    return handlers


def without_out(op: Any) -> Any | None:
    """Return the op without `out`: `softmax.int` for `softmax.int_out`; None if there is none.

    Args:
        op: an `OpOverload`.
    """
    if not _out_names(op):
        return None
    packet = op.overloadpacket
    for overload in packet.overloads():
        base = getattr(packet, overload)
        if not _out_names(base) and _inputs(op) in (_inputs(base), _inputs(base, _OF_FACTORIES)):
            return base
    return None


def is_in_place(name: str) -> bool:
    """Tell whether an op of a table writes over its first argument, as `pow_.Scalar` does."""
    return name.partition(".")[0].endswith("_")


def _find(name: str) -> Any | None:
    packet_name, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, packet_name, None)
    return getattr(packet, overload or "default", None)


def _variants(name: str, handler: Handler) -> Iterable[tuple[Any, Handler]]:
    in_place = _in_place(name)
    if in_place is not None:
        yield in_place, _make_in_place(handler)
    for op in _with_out(name):
        yield op, writing(handler, op, _find(name))


def _with_out(name: str) -> Iterable[Any]:
    """Yield the ops with the same inputs that write their result to `out`: `sum.IntList_out`."""
    base = _find(name)
    if base is None or _out_names(base):
        return
    packet = getattr(torch.ops.aten, name.partition(".")[0])
    for overload in packet.overloads():
        op = getattr(packet, overload)
        if _out_names(op) and _inputs(op) == _inputs(base):
            yield op


def _in_place(name: str) -> Any | None:
    """Return the in-place op with the same types of arguments: `pow_.Scalar` for `pow.Tensor_Scalar`."""
    base, _, overload = name.partition(".")
    op, packet = _find(name), getattr(torch.ops.aten, f"{base}_", None)
    if op is None or packet is None:
        return None
    wanted = _types(op)
    named = getattr(packet, overload or "default", None)
    others = (getattr(packet, other) for other in packet.overloads())
    fitting = [one for one in (named, *others) if one is not None and _types(one) == wanted]
    if fitting:
        return fitting[0]
    return named if named is not None and _types(named)[:1] == wanted[:1] else None


def _types(op: Any) -> list[str]:
    return [str(argument.type) for argument in arguments_of(op)]


def _inputs(op: Any, less: Iterable[str] = ()) -> list[tuple[str, str]]:
    arguments = (
        argument for argument in arguments_of(op) if not argument.is_out and argument.name not in less
    )
    return [(argument.name, str(argument.type)) for argument in arguments]


def _out_names(op: Any) -> tuple[str, ...]:
    return tuple(argument.name for argument in arguments_of(op) if argument.is_out)


def _make_in_place(handler: Handler) -> Handler:
    @functools.wraps(handler)
    def in_place(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return self.copy_(handler(self, *args, **kwargs))

    return in_place


def writing(handler: Handler, op: Any, base: Any) -> Handler:
    """Return the handler of an op with `out`, made from the handler of the op without.

    Args:
        handler: of the op without.
        op: the op with `out`.
        base: the op without.
    """
    names = _out_names(op)
    takes_dtype = len(names) == 1 and any(argument.name == "dtype" for argument in arguments_of(base))

    @functools.wraps(handler)
    def into(*args: Any, **kwargs: Any) -> Any:
        outs = tuple(kwargs.pop(name) for name in names)
        if takes_dtype and kwargs.get("dtype") is None:
            kwargs["dtype"] = outs[0].dtype  # the dtype in which torch computes then
        result = handler(*args, **kwargs)
        for out, value in zip(outs, result if isinstance(result, tuple) else (result,), strict=True):
            if not torch.can_cast(value.dtype, out.dtype):
                raise RuntimeError(f"result type {value.dtype} can't be cast to {out.dtype}, the type of out")
            out.resize_(value.shape).copy_(value)
        return outs[0] if len(outs) == 1 else outs

    return into


def rounding_once(handler: Handler, *, in_place: bool = False) -> Handler:
    """Return the handler for arguments or results in float16 and bfloat16.

    Results have the dtype of the argument `dtype`, or the one that torch's promotion gives.

    Args:
        handler: computes in float32 and float64.
        in_place: it writes over its first argument and returns that.
    """
    if getattr(handler, _OWN_ROUNDING, False):
        return handler
    if in_place:
        return _rounding_in_place(handler)

    @functools.wraps(handler)
    def handle(*args: Any, **kwargs: Any) -> Any:
        asked = kwargs.get("dtype")
        target = asked or _promoted([*_floats((args, *kwargs.values()))])
        if asked in LOW_PRECISION:  # torch converts the inputs to that dtype first
            args = _mapped(args, lambda tensor: tensor.to(asked) if tensor.is_floating_point() else tensor)
            kwargs = {**kwargs, "dtype": torch.float32}
        up = {name: _mapped(value, raised) for name, value in kwargs.items()}
        out = handler(*_mapped(args, raised), **up)
        if target not in LOW_PRECISION:
            return out
        return _mapped(out, lambda tensor: tensor.to(target) if tensor.dtype == torch.float32 else tensor)

    return handle


def _rounding_in_place(handler: Handler) -> Handler:
    @functools.wraps(handler)
    def handle(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        up = {name: _mapped(value, raised) for name, value in kwargs.items()}
        out = handler(raised(self), *_mapped(args, raised), **up)
        return self if out is self else self.copy_(out)

    return handle


def _promoted(tensors: list[torch.Tensor]) -> torch.dtype | None:
    """Return the dtype of torch's promotion: tensors without dimensions count only where all are such."""
    counting = [tensor for tensor in tensors if tensor.dim()] or tensors
    dtypes = [tensor.dtype for tensor in counting]
    return functools.reduce(torch.promote_types, dtypes) if dtypes else None


def _floats(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _floats(item)


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        return type(value)(_mapped(item, change) for item in value)
    return value
