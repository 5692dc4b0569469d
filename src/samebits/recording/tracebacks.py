"""Tracebacks as bare Python has them: without the frames of what samebits has put around functions."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.package import FOLDER
from samebits.torch_private import OP_CALLS

if TYPE_CHECKING:
    from types import CodeType, TracebackType

_PACKAGE = FOLDER + os.sep


def clean_tracebacks(error: BaseException) -> None:
    """Take the frames of wrappers out of the traceback of an error, of its causes and of what it groups.

    A frame of samebits that called something else is a wrapper's. The innermost frames are kept when samebits
    itself raised the error.

    Args:
        error: changed in place.
    """
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        link = pending.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        link.__traceback__ = _without_wrappers(link.__traceback__, link)
        pending += [link.__cause__, link.__context__]
        grouped = getattr(link, "exceptions", ())  # of an ExceptionGroup, new in Python 3.11
        if isinstance(grouped, tuple):
            pending += [inner for inner in grouped if isinstance(inner, BaseException)]


def _without_wrappers(trace: TracebackType | None, error: BaseException) -> TracebackType | None:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    n_kept = 0 if _is_raised_by_script(entries, error) else _n_innermost_own(entries)
    passed = len(entries) - n_kept
    kept = [entry for i, entry in enumerate(entries) if i >= passed or not _is_wrapper(entries, i)]
    if len(kept) == len(entries):
        return entries[0] if entries else None
    following: TracebackType | None = None
    for entry in reversed(kept):
        entry.tb_next = following
        following = entry
    return following


def _is_raised_by_script(entries: list[TracebackType], error: BaseException) -> bool:
    """Whether the innermost frames of samebits are wrappers too, around functions of C, which have none."""
    n = _n_innermost_own(entries)
    innermost = entries[len(entries) - n :]
    nested = all(entry.tb_frame.f_code.co_flags & inspect.CO_NESTED for entry in innermost)
    return nested and not isinstance(error, SamebitsError)


def _n_innermost_own(entries: list[TracebackType]) -> int:
    n = 0
    while n < len(entries) and _is_own(entries[-1 - n].tb_frame.f_code):
        n += 1
    return n


def _is_wrapper(entries: list[TracebackType], i: int) -> bool:
    """Whether a frame is samebits', or torch's for an op that samebits called in its dispatch mode."""
    code = entries[i].tb_frame.f_code
    if _is_own(code):
        return True
    called_by_us = i > 0 and _is_own(entries[i - 1].tb_frame.f_code)
    return called_by_us and code.co_filename.replace(os.sep, "/").endswith(OP_CALLS)


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith(_PACKAGE)
