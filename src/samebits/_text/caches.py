"""Where what was computed before is kept, so that it need not be computed again."""

from __future__ import annotations

import os
import sys

from samebits._text.variable_names import CACHE


def cache_folder() -> str:
    """Return the folder for caches of this user: `SAMEBITS_CACHE`, or `samebits` in the system's own."""
    chosen = os.environ.get(CACHE)
    if chosen:
        return os.path.abspath(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "samebits")
