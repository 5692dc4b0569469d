"""Replacing attributes so that they can be put back exactly as they were."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Patches:
    """A list of replaced attributes; `restore` undoes them, last first."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace `owner.name`; an inherited attribute is shadowed and later uncovered again."""
        self._saved.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def restore(self) -> None:
        """Put everything back."""
        while self._saved:
            owner, name, value = self._saved.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
