"""Errors for values that cannot be saved, and for files that are refused."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import os
from typing import TYPE_CHECKING, Any

from samebits._text.wording import with_article
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable


class DamageError(Exception):
    """A file is torn, altered, or was never whole. The text says how."""


def unsaveable(where: str, reason: str) -> SamebitsError:
    """Return the error for an entry that cannot be saved."""
    text = " ".join(f"{where} cannot be saved: {reason}".split())
    return SamebitsError(f"{text}. Nothing was written.", slug="checkpoint-entry")


def path_text(path: Any) -> str:
    """Return a path as text.

    Raises:
        SamebitsError: it is no path; `checkpoint-path`.
    """
    try:
        text = os.fsdecode(path)
        if text and b"\0" not in os.fsencode(text):
            return text
    except (TypeError, ValueError):
        pass
    raise SamebitsError(f"the path is {path!r:.200}; expected the name of a file", slug="checkpoint-path")


def describe(value: Any) -> str:
    """Say in words what a value is, and what to save instead."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return f"it is {with_article(name)}; {_advice(value)}"


_BUILT_IN = (tuple, dict, int, float, str, bytes, list, set)
_ADVICE: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (
        lambda value: isinstance(value, enum.Enum),
        "save its `.value` or `.name`, and make the member of it after loading",
    ),
    (
        lambda value: dataclasses.is_dataclass(value) and not isinstance(value, type),
        "save `dataclasses.asdict(…)` of it",
    ),
    (lambda value: isinstance(value, os.PathLike), "save `str(…)` of it"),
    (
        lambda value: isinstance(value, type) or callable(value),
        "code is not saved: leave it out, and make it anew after loading",
    ),
    (lambda value: isinstance(value, argparse.Namespace), "save `vars(…)` of it"),
)


def _advice(value: Any) -> str:
    for holds, text in _ADVICE:
        if holds(value):
            return text
    if isinstance(value, _BUILT_IN):
        return f"save `{_base(value).__name__}(…)` of it"
    return (
        "expected something with `state_dict` and `load_state_dict`, or tensors, arrays, numbers, text, "
        "bytes, None and containers of these"
    )


def _base(value: Any) -> type:
    return next(kind for kind in type(value).__mro__ if kind.__module__ == "builtins")
