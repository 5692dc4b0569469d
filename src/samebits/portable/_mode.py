"""Portable mode as a dispatch mode: torch calls Python for every op, whatever the release."""

from __future__ import annotations

from typing import Any

import torch

from samebits._torch.dispatch_modes import dispatch_mode_class
from samebits._torch.portable import is_faking
from samebits.portable._plans import Plans

_PLAIN = (torch.Tensor,)


class DispatchMode(dispatch_mode_class()):  # type: ignore[misc]
    """The dispatch mode that gives ops their portable values while it is entered, and refuses the others."""

    def __init__(self) -> None:
        super().__init__()
        self._plans = Plans()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True wraps each call to keep the compiler out, which costs time; nothing compiles here.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an op; torch calls this for each one."""
        if types and types != _PLAIN and _have_own_dispatch(types):
            if _have_no_contents(types):
                return func(*args, **(kwargs or {}))
            return NotImplemented  # then the class itself calls the ops that it consists of
        return self._plans.run(func, args, kwargs or {}, self)


def _have_no_contents(types: Any) -> bool:
    """Tell whether they are fake tensors, or wrap them, as some subclasses do while torch exports."""
    return any(kind.__name__ == "FakeTensor" for kind in types) or is_faking()


def _have_own_dispatch(types: Any) -> bool:
    """Return False for `torch.Tensor`, which torch names when autograd saves what an op has just returned."""
    return any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types)
