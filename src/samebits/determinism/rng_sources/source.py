"""What an RNG source is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from types import ModuleType

UNSAVED_SLUG = "rng-not-saved"


class RngSource(Protocol):
    """**Protocol:** one generator, or one set of them, that can be seeded, saved and restored."""

    @property
    def name(self) -> str:
        """What the user sees, such as `numpy`."""

    @property
    def module(self) -> str:
        """The module whose import makes the generator exist; empty when it always does."""

    def available(self) -> bool:
        """Whether it exists in this process now. Imports nothing."""

    def seed(self, seed: int) -> None:
        """Seed it.

        Args:
            seed: from 0 to 2**64 - 1; `seeds.fit` makes 32 bits of it.
        """

    def get_state(self) -> bytes:
        """Its state, without pickle: JSON or raw bytes.

        Raises:
            SamebitsError: it has no state that can be read; `rng-not-saved`.
        """

    def set_state(self, state: bytes) -> None:
        """Put back what `get_state` gave.

        Raises:
            Exception: any, when the state does not fit; the caller makes one clear error of it.
        """

    def version(self) -> str:
        """The library and its version, as a user would say it: `numpy 2.4.6`."""


def loaded(name: str, *needed: str) -> ModuleType | None:
    """The module, when it has been imported as far as these attributes of it.

    Not when its import is complete: that it is only after the callbacks of `PostImport`.
    """
    module = sys.modules.get(name)
    return module if all(hasattr(module, attribute) for attribute in needed) else None


def version_of(name: str) -> str:
    """Name and version of an imported library."""
    return f"{name} {getattr(sys.modules.get(name), '__version__', 'of unknown version')}"


def unsaved(library: str, reason: str) -> SamebitsError:
    """The error for a generator whose state cannot be read."""
    message = (
        f"the generator of {library} can be seeded, but neither saved nor restored: {reason}; "
        "draw from a generator that can be saved where that matters"
    )
    return SamebitsError(message, slug=UNSAVED_SLUG)


def expect(condition: Any, reason: str) -> None:
    """Refuse a state.

    Raises:
        ValueError: the condition does not hold.
    """
    if not condition:
        raise ValueError(reason)
