"""The class that dispatch modes of ours are made from. They get higher-order ops too, whatever the torch.

torch calls a mode for such an op, as `torch.cond`, only if the class of the mode has the attribute
`supports_higher_order_operators` (`HigherOrderOperator.dispatch` in torch/_ops.py, 2.9.1 to 2.15.0). torch
2.6.0 to 2.8.0 do not look for it. There the op raises NotImplementedError in all modes but torch's own.
"""

from __future__ import annotations

import functools
from typing import Any

_ATTRIBUTE = "supports_higher_order_operators"


@functools.cache
def dispatch_mode_class() -> type[Any]:
    """Return a `TorchDispatchMode` that higher-order ops are handed to.

    That class is documented, although it lives in an underscore module.
    """
    from torch.utils import _python_dispatch

    mode: Any = _python_dispatch.TorchDispatchMode

    class EveryOpMode(mode):  # type: ignore[misc]
        """A dispatch mode that gets every op."""

        supports_higher_order_operators = True

        def __init__(self) -> None:
            super().__init__()
            if not hasattr(mode, _ATTRIBUTE):
                hand_over_higher_order_ops(EveryOpMode)

    return EveryOpMode


@functools.cache
def hand_over_higher_order_ops(kind: type[Any]) -> None:
    """Have torch call the modes of a class for higher-order ops, as later releases of torch do.

    It lasts as long as the process; other modes get what they got before.
    """
    import torch
    from torch.utils._python_dispatch import _get_current_dispatch_mode, _pop_mode_temporarily

    operator: Any = torch._ops.HigherOrderOperator
    python = torch._C.DispatchKey.Python
    former = operator.dispatch

    @functools.wraps(former)
    def dispatch(op: Any, key: Any, /, *args: Any, **kwargs: Any) -> Any:
        mode: Any = _get_current_dispatch_mode() if key == python else None
        if not isinstance(mode, kind):
            return former(op, key, *args, **kwargs)
        with _pop_mode_temporarily():
            return mode.__torch_dispatch__(op, (), args, kwargs)

    operator.dispatch = dispatch
