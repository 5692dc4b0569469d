"""Compiled libraries that this process loads: whether they can have brought ops of torch."""

from __future__ import annotations

from typing import Any

from samebits.digest.native import load_module


class Libraries:
    """The libraries that the process had when this was made, or last asked."""

    def __init__(self) -> None:
        self._module: Any = load_module()
        self._unloads = self._count = 0
        self.has_more_for_torch()

    def has_more_for_torch(self) -> bool:
        """Tell whether one was loaded since that is made for torch; yes where that cannot be known."""
        if self._module is None:
            return True
        unloads, count, found = self._module.libraries_from(self._count)
        if unloads != self._unloads:  # others have their places now
            _, _, found = self._module.libraries_from(0)
        self._unloads, self._count = unloads, count
        return bool(found)
