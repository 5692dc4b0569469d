"""The moment at which a process begins to use CUDA.

torch keeps what waits for it in a list, in the order in which it is to be called (torch/cuda/__init__.py,
`_lazy_call` and `_queued_calls`, 2.15.0). Without these names there is no such moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def when_cuda_starts(callback: Callable[[], None]) -> Callable[[], None]:
    """Call back once CUDA is used in this process; at once if it is.

    Args:
        callback: what to call.

    Returns:
        A function that withdraws it.
    """
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        callback()
        return lambda: None
    waiting: Any = getattr(cuda, "_queued_calls", None)
    if waiting is None:
        return lambda: None
    entry = callback, ["(samebits)"]  # torch shows the second where the first fails
    waiting.append(entry)

    def withdraw() -> None:
        if entry in waiting:
            waiting.remove(entry)

    return withdraw
