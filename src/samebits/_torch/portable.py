"""Undocumented names of torch that portable mode uses; imported when torch is there.

An op's schema is what torch's own tools read (torch/_library/utils.py, 2.6.0 and 2.13.0). Without it no op
can be told from another, so there is nothing to fall back to: portable mode then ends with an AttributeError,
never with other bits.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.core import COMPILER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from torch import Tensor


def schema_name(op: Any) -> str:
    """Return the name of an `OpOverload` such as `aten::add_`."""
    name: str = op._schema.name
    return name


def overload_name(op: Any) -> str:
    """Return `Tensor` for `aten::add_.Tensor`, and `default` for an overload without a name."""
    name: str = op._overloadname
    return name


def op_names() -> list[str]:
    """Return the names of all ops, such as `aten::mm` and `aten::sum.dim_IntList`."""
    names: list[str] = torch._C._dispatch_get_all_op_names()
    return names


def name_of(op: Any) -> str:
    """Return such a name of an `OpOverload`."""
    overload = overload_name(op)
    return schema_name(op) if overload == "default" else f"{schema_name(op)}.{overload}"


def op_named(name: str) -> Any:
    """Return the `OpOverload` of such a name."""
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


def arguments_of(op: Any) -> Sequence[Any]:
    """Return the parameters of an op's schema, each with `name`, `type` and `is_out`."""
    arguments: Sequence[Any] = op._schema.arguments
    return arguments


def returns_nothing(op: Any) -> bool:
    """Tell whether an op's schema has no results."""
    return not op._schema.returns


def names_tensors(op: Any) -> bool:
    """Tell whether a tensor is among the arguments or results of an op's schema."""
    return any("Tensor" in str(each.type) for each in (*arguments_of(op), *op._schema.returns))


def is_mutable(op: Any) -> bool:
    """Tell whether an op writes to an argument."""
    return bool(op._schema.is_mutable)


def written_arguments(op: Any) -> tuple[frozenset[int], frozenset[str]]:
    """Return the positions and the names of the arguments that an op writes to."""
    written = [
        (at, argument.name)
        for at, argument in enumerate(arguments_of(op))
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return frozenset(at for at, _ in written), frozenset(name for _, name in written)


def can_decompose(op: Any) -> bool:
    """Tell if torch makes an op of others by `op.decompose`; no where torch does not say (then refused)."""
    return bool(getattr(op, "_can_decompose", bool)())


def parts_of(op: Any) -> Callable[..., Any]:
    """Return the function that makes an op of others, torch's own in C++ where there is one.

    `op.decompose` may be a Python function that does not do the same: that of recurrent layers leaves dropout
    out (torch/_decomp/decompositions.py, 2.13.0).
    """
    key: Any = torch._C._dispatch_key_parse("CompositeImplicitAutograd")
    in_key = getattr(op, "_op_dk", None)
    if in_key is None or not torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key):
        whole: Callable[..., Any] = op.decompose
        return whole
    return functools.partial(in_key, key)


def function_of(op: Any) -> Callable[..., Any]:
    """Return what an `OpOverload` calls below its Python function; the op itself without that name."""
    function: Callable[..., Any] = getattr(op, "_op", op)
    return function


def asks_compiler(op: Any) -> bool:
    """Tell whether an op on the meta device would import torch's compiler, which is not imported yet.

    Python code computes such an op there, and torch keeps its compiler out of that code (torch/_compile.py,
    2.13.0). Without the name that it looks up, the answer is no.
    """
    known: Any = vars(torch.library).get("_impls", ())
    return COMPILER not in sys.modules and f"{name_of(op).replace('::', '/')}/Meta" in known


def outside_modes() -> AbstractContextManager[object]:
    """Return a context in which ops go to torch itself, past all dispatch modes, the script's too.

    Without the name that it looks up, a mode of the script sees them.
    """
    guard: Any = getattr(torch._C, "_DisableTorchDispatch", contextlib.nullcontext)
    entered: AbstractContextManager[object] = guard()
    return entered


def tracer() -> Any | None:
    """Return torch's mode that records ops as a graph (`make_fx`) or makes fake tensors; None without either.

    They come below every other mode, whichever was entered first: a kernel has run before they see anything.
    """
    if not torch._C._len_torch_dispatch_stack():  # all modes of this thread but the one that is asked now
        return None
    keys, mode_of = torch._C._TorchDispatchModeKey, torch._C._get_dispatch_mode
    mode: Any = mode_of(keys.FAKE) or mode_of(keys.PROXY)
    return mode


def gives_no_contents(mode: Any) -> bool:
    """Tell whether the mode that `tracer` returned makes fake tensors."""
    return bool(mode._mode_key == torch._C._TorchDispatchModeKey.FAKE)


def is_faking() -> bool:
    """Tell whether torch traces or exports with fake tensors: nothing that is computed has contents."""
    mode = tracer()
    return mode is not None and gives_no_contents(mode)


@contextlib.contextmanager
def without_tracer(mode: Any) -> Iterator[None]:
    """Return a context in which that mode is off, as torch has it while such a mode works."""
    torch._C._unset_dispatch_mode(mode._mode_key)
    try:
        yield
    finally:
        torch._C._set_dispatch_mode(mode)


def to_copy(tensor: Tensor, **wanted: Any) -> Tensor:
    """Return the op that `Tensor.to` calls when it copies, with the keywords of its schema."""
    copied: Tensor = torch.ops.aten._to_copy.default(tensor, **wanted)
    return copied


def determinant(matrices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Call the op of `torch.linalg.det`: determinants, and the factors and pivots that they come from."""
    results: tuple[Tensor, Tensor, Tensor] = torch.ops.aten._linalg_det(matrices)
    return results


def unique_ascending(tensor: Tensor, *, inverse: bool, counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Call the op of `torch.unique` without `dim`: ascending values, and the other results asked for."""
    results: tuple[Tensor, Tensor, Tensor] = torch.ops.aten._unique2(tensor, True, inverse, counts)
    return results


def choices_of_steps() -> list[tuple[Any, str]]:
    """Return where the function is that chooses how optimizers step that are not told: `(fused, foreach)`.

    On a GPU they step many tensors at a time (torch/optim/optimizer.py, 2.6.0 to 2.15.0), by formulas that
    round in other places. Each module of an optimizer has its own reference to it.
    """
    name = "_default_to_fused_or_foreach"
    modules = [module for path, module in sys.modules.items() if path.startswith("torch.optim.")]
    return [(module, name) for module in modules if hasattr(module, name)]


MATH_ATTENTION = 0
"""The number of `torch.nn.attention.SDPBackend.MATH`."""


def fused_attention_choice(*args: Any, **kwargs: Any) -> int:
    """Return the number of the `SDPBackend` that torch chooses for an attention of these tensors."""
    choose: Any = torch._fused_sdp_choice
    return int(choose(*args, **kwargs))


def use_cudnn(*, wanted: bool) -> bool:
    """Set whether cuDNN may be used, and nothing else about it. Return what was set before."""
    core: Any = torch._C
    before = bool(core._get_cudnn_enabled())
    core._set_cudnn_enabled(wanted)
    return before
