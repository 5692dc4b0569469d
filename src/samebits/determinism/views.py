"""An object as somebody else sees it: the same, but for some attributes."""

from __future__ import annotations

from typing import Any


class View:
    """Passes everything on to an object, except attributes that have another value here.

    The object itself is not changed, not even for a moment, so other threads never see those values.

    Args:
        target: the object.
        attributes: what is different.
    """

    __slots__ = ("_samebits_attributes", "_samebits_target")

    def __init__(self, target: Any, **attributes: Any) -> None:
        object.__setattr__(self, "_samebits_target", target)
        object.__setattr__(self, "_samebits_attributes", attributes)

    def __getattr__(self, name: str) -> Any:
        if name in self._samebits_attributes:
            return self._samebits_attributes[name]
        return getattr(self._samebits_target, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._samebits_target, name, value)

    def __len__(self) -> int:
        return len(self._samebits_target)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the object, for `isinstance`."""
        return type(self._samebits_target)
