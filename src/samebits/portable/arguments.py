"""What torch does not take, torch itself says no to, in portable mode too.

Handlers compute; they do not repeat torch's checks of shapes and dtypes. So the first call with each set of
shapes and dtypes (handling.py) is tried without contents, on the meta device; where that leaves a doubt,
torch's own op is tried on copies, and its error, if any, is the script's. An error in a handler (an index out
of range) is told by torch in the same way.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from samebits.hooks.interruptions import pass_on
from samebits.portable.exact.standing import base_name
from samebits.portable.refusals import refuse_arguments
from samebits.torch_private import is_random
from samebits.torch_private_portable import outside_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TENSOR = torch.Tensor
_PLAIN_INDICES = frozenset({torch.int64, torch.bool})
# What torch checks for these on the CPU only, or at calls with contents only.
_LAX = frozenset(
    {
        *("_embedding_bag", "_log_softmax", "_softmax", "binary_cross_entropy", "nll_loss2d_forward"),
        *("index_add", "index_reduce", "put", "scatter_add", "scatter_reduce"),
    }
)
_LIKE_TORCH = (RuntimeError, IndexError, ValueError, MemoryError)


def check(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what torch raises for arguments of these shapes and dtypes.

    Args:
        op: the `OpOverload`.
        args: its arguments.
        kwargs: those by name.
    """
    tensors = [*_tensors((args, tuple(kwargs.values())))]
    if not tensors and kwargs.get("dtype") in {None, torch.float32, torch.float64}:
        return
    sure = bool(tensors) and base_name(op) not in _LAX and not _in_doubt(tensors)
    if not sure or not _passes_without_contents(op, args, kwargs):
        _try(op, args, kwargs)


def raise_as_torch(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> NoReturn:
    """Raise what torch raises for these arguments, whose handler failed; a refusal if torch takes them.

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
    """Whether the meta device takes it; what it does not take, the CPU may: it lacks some ops."""
    try:
        with outside_modes():
            op(*_mapped(args, _without_contents), **_mapped(kwargs, _without_contents))
    except Exception as error:  # noqa: BLE001 - whatever torch says
        pass_on(error)
        return False
    return True


def _in_doubt(tensors: list[torch.Tensor]) -> bool:
    """Whether torch looks at dtypes that it does not look at on the meta device."""
    if not tensors[0].dtype.is_floating_point:
        return True
    dtypes = {tensor.dtype for tensor in tensors}
    floats = {dtype for dtype in dtypes if dtype.is_floating_point}
    return len(floats) != 1 or not dtypes - floats <= _PLAIN_INDICES


def _try(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let torch compute, on copies, what is not used: for its errors."""
    # Other threads may draw meanwhile: the generator is put back only if the op draws.
    kept = torch.random.fork_rng(devices=[]) if is_random(op) else contextlib.nullcontext()
    with kept, outside_modes():
        op(*_mapped(args, torch.clone), **_mapped(kwargs, torch.clone))


def _without_contents(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, _TENSOR):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, _TENSOR):
        return change(value)
    if isinstance(value, torch.Generator):
        return None
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    return type(value)(_mapped(item, change) for item in value) if type(value) in {list, tuple} else value
