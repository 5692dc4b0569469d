"""Pins inside torch: where data are loaded, memory of devices, the number of threads."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from samebits.determinism.pins.numpy_memory import fill_arrays
from samebits.hooks.frames import calling_frame

if TYPE_CHECKING:
    from samebits.determinism.pins.tools import PinTools

_OF_WORKERS = ("prefetch_factor", "multiprocessing_context")
_EMPTY = ("empty", "empty_like", "empty_strided", "empty_permuted")
_NEW_EMPTY = ("new_empty", "new_empty_strided", "resize_", "resize_as_")


def pin_workers(tools: PinTools) -> None:
    """Loaders have no workers: the main process loads the data."""
    tools.imports.on_torch(lambda torch: _pin_loaders(tools, torch.utils.data.DataLoader))


def _pin_loaders(tools: PinTools, kind: Any) -> None:
    original = kind.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError:
            original(self, *args, **kwargs)  # raises as it does
            return
        if given.arguments.get("num_workers"):
            given.arguments.update(num_workers=0)
            for name in (*_OF_WORKERS, "persistent_workers", "timeout"):
                given.arguments.pop(name, None)
        original(*given.args, **given.kwargs)

    tools.patches.set(kind, "__init__", begin)


def pin_thread_calls(tools: PinTools) -> None:
    """The script's own `torch.set_num_threads` sets one thread."""
    tools.imports.on_torch(
        lambda torch: tools.replace(torch, "set_num_threads", lambda f, _: f(1), tools.asker.is_direct)
    )


def pin_fill(tools: PinTools) -> None:
    """Fresh memory of NumPy and of devices is zero; the C library fills all other memory of the CPU."""
    tools.imports.on_import("numpy", lambda numpy: _fill_arrays(tools, numpy))
    tools.imports.on_torch(lambda torch: _pin_empty(tools, torch))


def _fill_arrays(tools: PinTools, numpy: Any) -> None:
    put_back = fill_arrays(numpy)
    if put_back is not None:
        tools.at_end.append(put_back)


def _pin_empty(tools: PinTools, torch: Any) -> None:
    def zeroed(function: Any, *args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return made if made.device.type in ("cpu", "meta") else made.zero_()

    for name in _EMPTY:
        tools.replace(torch, name, zeroed, tools.asker.is_direct)
    for name in _NEW_EMPTY:
        _pin_method(tools, torch, name)


def _pin_method(tools: PinTools, torch: Any, name: str) -> None:
    original = getattr(torch.Tensor, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.numel() if name.startswith("resize") else 0
        made = original(self, *args, **kwargs)
        fresh = made.device.type not in ("cpu", "meta") and tools.asker.is_direct(calling_frame())
        if fresh and made.is_contiguous():
            made.view(-1)[before:].zero_()
        return made

    tools.patches.set(torch.Tensor, name, method)
