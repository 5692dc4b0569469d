"""Draws of addresses that the script asks for as numbers: `tensor.data_ptr()`, `ctypes.addressof`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import USER, calling_frame
from samebits.hooks.standing import leave_no_line, unseen
from samebits.recording.probes.draw_functions import user_fact

if TYPE_CHECKING:
    from samebits.hooks.imports import PostImport
    from samebits.hooks.patching import Patches
    from samebits.recording.probes.draw_log import DrawLog

_OF_TENSORS = ("Tensor", "UntypedStorage", "TypedStorage")


def watch_addresses(patches: Patches, log: DrawLog, imports: PostImport) -> None:
    """Record addresses that the user's own code asks for; libraries ask for what they call.

    Args:
        patches: undo the replacements.
        log: told of draws.
        imports: calls back when a module is imported.
    """

    def watch_tensors(torch: Any) -> None:
        for name in _OF_TENSORS:
            kind = getattr(torch, name)
            patches.set(kind, "data_ptr", _asked(kind.data_ptr, f"torch.{name}.data_ptr", log))

    def watch_ctypes(ctypes: Any) -> None:
        patches.set(ctypes, "addressof", user_fact(ctypes.addressof, "ctypes.addressof", log))

    imports.on_torch(watch_tensors)
    imports.on_import("ctypes", watch_ctypes)


def _asked(method: Any, op: str, log: DrawLog) -> Any:
    @functools.wraps(method)
    def data_ptr(self: Any, /) -> Any:
        try:
            address = method(self)
        except BaseException as error:
            leave_no_line(error)
            raise
        if log.active:
            frame = calling_frame()
            if log.ranks.of(frame) == USER:
                log.taken_by_user(op, frame, address)
        return address

    return unseen(data_ptr)
