"""How ops come to portable mode: what the user asks for. Imports no torch."""

from __future__ import annotations

import os

from samebits._text.str_enum import StrEnum
from samebits._text.variable_names import PORTABLE_DISPATCH
from samebits.errors import SamebitsError


class Way(StrEnum):
    """A way in which ops come to portable mode; both give the same bits."""

    REGISTRATION = "registration"
    """Kernels in torch's own dispatcher."""
    MODE = "mode"
    """A dispatch mode: torch calls Python for each op."""


def wanted_way() -> Way | None:
    """Return the way that the variable `SAMEBITS_PORTABLE_DISPATCH` asks for, None where it says nothing.

    Raises:
        SamebitsError: if it names none; `portable-dispatch`.
    """
    wanted = os.environ.get(PORTABLE_DISPATCH, "")
    if wanted not in {"", *Way}:
        raise SamebitsError(
            f"{PORTABLE_DISPATCH}={wanted} names no way in which operations come to portable mode; expected "
            f"{' or '.join(Way)}; unset the variable",
            slug="portable-dispatch",
        )
    return Way(wanted) if wanted else None
