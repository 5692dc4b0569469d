"""Explaining the error of an op that has no deterministic implementation."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from samebits.hooks.frames import LIBRARY, USER, FrameRanks, Site, site_of

if TYPE_CHECKING:
    from types import TracebackType

# `Context::alertNotDeterministic`, aten/src/ATen/Context.cpp; the same text in torch/_prims_common.
_ERROR = re.compile(r"^(?P<name>.+?) does not have a deterministic implementation, but you set")
_ALLOW = (
    "or allow it for a few lines: "
    "`with samebits.deterministic(all_switches=False, switches={'deterministic-algorithms': 'off'}):`"
)


def explain(error: BaseException) -> str | None:
    """What torch's error is about: the op, its line, what to use instead.

    Args:
        error: any exception; its causes are looked at too.

    Returns:
        One line; None when it is no error of deterministic algorithms.
    """
    for link in _chain(error):
        found = _ERROR.match(str(link)) if isinstance(link, RuntimeError) else None
        if found is not None:
            return _explanation(found["name"], site_of_error(link))
    return None


def site_of_error(error: BaseException) -> Site | None:
    """The innermost line of the user's code in the traceback, or of a library when there is none."""
    ranks = FrameRanks()
    best: tuple[int, TracebackType] | None = None
    trace = error.__traceback__
    while trace is not None:
        rank = ranks.of(trace.tb_frame)
        if rank in (USER, LIBRARY) and (best is None or rank >= best[0]):
            best = (rank, trace)
        trace = trace.tb_next
    return None if best is None else site_of(best[1].tb_frame.f_code, best[1].tb_lineno)


def _explanation(name: str, site: Site | None) -> str:
    from samebits.determinism.op_advice import advice_for  # not at the start of control, which is timed

    advice = advice_for(name)
    where = "" if site is None else f" at {site.file}:{site.line}"
    lacks = "has no deterministic implementation"
    if advice is None:
        return f"{name}{where} {lacks}; expected one, because control is on; use another op, {_ALLOW}"
    part = "the backward pass of " if advice.backward else ""
    return f"{part}{advice.op} ({name}){where} {lacks}; instead: {advice.instead}; {_ALLOW}"


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in found:
        found.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return found


class ErrorExplainer:
    """Adds the explanation after the traceback of an error that ends the script."""

    def __init__(self) -> None:
        self._before = sys.excepthook
        self._on = False

    def install(self) -> None:
        """Begin."""
        self._before = sys.excepthook
        self._on = True
        sys.excepthook = self._hook

    def pause(self) -> None:
        """Explain nothing more."""
        self._on = False

    def remove(self) -> None:
        """Put back the hook that was there; one that was set on top of this stays, and calls through."""
        self._on = False
        if sys.excepthook == self._hook:
            sys.excepthook = self._before

    def _hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._before(kind, error, trace)
        text = explain(error) if self._on else None
        if text is not None:
            print(f"samebits: {text}", file=sys.stderr)
