"""The steps of a run: how many there were, what is called at the end of each, and how the run ends there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.records.events import TensorInfo

    Listener = Callable[[tuple[TensorInfo, ...], bytes], None]


class Steps:
    """Counts the steps of a run.

    Attributes:
        count: how many were closed; written here only.
    """

    def __init__(self) -> None:
        self.count = 0
        self._listeners: list[Listener] = []
        self._end: Callable[[], None] = lambda: None

    def listen(self, listener: Listener, *, first: bool = False) -> None:
        """Have a function called at each boundary.

        Args:
            listener: given what describes the state that was just recorded, and its digests.
            first: before those that listen already; they may end the run.
        """
        self._listeners.insert(0 if first else len(self._listeners), listener)

    def leave(self, listener: Listener) -> None:
        """Call it no more; does nothing for one that does not listen."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def close(self, infos: tuple[TensorInfo, ...], digests: bytes) -> None:
        """Close a step: what listens decides whether the run goes on.

        Args:
            infos: describe the state; empty where none was recorded.
            digests: of the state.
        """
        self.count += 1
        for listener in self._listeners:
            listener(infos, digests)

    def reopen(self) -> None:
        """Go on with the step that was closed last: one more optimizer belongs to it."""
        self.count -= 1

    def end_by(self, end: Callable[[], None]) -> None:
        """Have the run ended by that function, which ends the process and does not go back to the script."""
        self._end = end

    def end_run(self) -> None:
        """End the run where it is; does nothing where the recording is not of a whole run."""
        self._end()
