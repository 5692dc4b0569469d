"""States of optimizers whose dtype is another one than that of their parameters."""

from __future__ import annotations

from typing import Any

import torch

from samebits.errors import SamebitsError


def keep_dtypes(saved: Any, optimizer: Any, where: str) -> None:
    """Put back tensors of an optimizer's state that `load_state_dict` converted.

    `torch.optim.Optimizer` converts what it takes to the dtype of the parameter: averages in float32 of a
    bfloat16 model lose their bits, and the products of NAdam for a float64 model are rounded another way.

    Args:
        saved: the state that the optimizer has just taken.
        optimizer: gives its own tensors in `state_dict()`, as torch's do.
        where: the name of the part.

    Raises:
        SamebitsError: it converted one and keeps it elsewhere; `checkpoint-mismatch`.
    """
    for _, name, value, held in _converted(saved, optimizer):
        held[name] = _moved(value, held[name])
    left = [f"{where}.state.{place}.{name}" for place, name, _, _ in _converted(saved, optimizer)]
    if left:
        message = f"the optimizer took {left[0]} in another dtype than it was saved in, and its bits are lost"
        raise SamebitsError(f"{message}. Parts before it are restored.", slug="checkpoint-mismatch")


def _converted(saved: Any, optimizer: Any) -> list[tuple[Any, Any, Any, dict[Any, Any]]]:
    """Parameter, name, what was saved, and what holds the value now; of each that is of another dtype."""
    here = optimizer.state_dict().get("state")
    pairs = [(place, values, here.get(place)) for place, values in saved.get("state", {}).items()]
    return [
        (place, name, value, held)
        for place, values, held in pairs
        if isinstance(values, dict) and isinstance(held, dict)
        for name, value in values.items()
        if _is_other(value, held.get(name))
    ]


def _is_other(value: Any, now: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(now, (list, tuple)):
        return any(map(_is_other, value, now))
    both = isinstance(value, torch.Tensor) and isinstance(now, torch.Tensor)
    return both and value.dtype != now.dtype


def _moved(value: Any, now: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_moved, value, now))
    return value.to(now.device) if isinstance(value, torch.Tensor) else value
