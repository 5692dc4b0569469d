"""How whoever reads a text called samebits, which decides what an option is called there."""

from __future__ import annotations

from enum import Enum, auto


class Interface(Enum):
    """The interface that a text is for: what it advises must exist there."""

    COMMAND = auto()
    """The command line."""
    ASSERT_REPEATABLE = auto()
    """The call of that name in a test."""
    ASSERTION = auto()
    """Another call of the pytest fixture."""
    CELL = auto()
    """The cell magic of a notebook."""

    def kill_at(self, *steps: int) -> str:
        """Return the option that kills runs after these steps, as it is written there."""
        if self is Interface.COMMAND:
            return f"--kill-at {','.join(map(str, steps))}"
        return f"kill_at={list(steps)}"

    def only(self, advice: str) -> str:
        """Return advice that names an option of the command line; nothing elsewhere."""
        return advice if self is Interface.COMMAND else ""
