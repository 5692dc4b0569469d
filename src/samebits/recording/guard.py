"""An unexpected error of a probe is not the script's: it is noted, and the script goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.hooks.interruptions import is_from_outside

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

# During these, the state of the run is recorded: without it two runs cannot be called identical.
_STATE_KINDS = ("a step", "a backward pass", "the last state")


def lost_state(notes: Iterable[str]) -> str:
    """The note of a record that says that some of the state is not in it; empty if there is none.

    Args:
        notes: of a `RunInfo`.
    """
    starts = tuple(_begin(kind) for kind in _STATE_KINDS)
    return next((note for note in notes if note.startswith(starts)), "")


def _begin(kind: str) -> str:
    return f"recording of {kind} failed"


class Failures:
    """What could not be recorded, and why: the first error of each kind."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def add(self, kind: str, error: BaseException) -> None:
        """Note an error, unless one of this kind is noted already."""
        if kind not in self._first:
            try:
                text = str(error).strip().partition("\n")[0]
            except Exception:  # noqa: BLE001 - an exception of the script's own
                text = ""
            self._first[kind] = type(error).__name__ + (f": {text}" if text else "")

    def notes(self) -> list[str]:
        """One line for each kind."""
        return [f"{_begin(kind)} and left something out ({text})" for kind, text in list(self._first.items())]


class Guard:
    """A context in which a probe records something: its ops are samebits' own, its errors are noted.

    Interrupts pass, as does what a signal handler of the script raises, and errors that samebits raises on
    purpose.

    Args:
        inside: the context that makes ops samebits' own.
        failures: where errors are noted.
        kind: what is being recorded, in words.
    """

    __slots__ = ("_failures", "_inside", "_kind")

    def __init__(self, inside: AbstractContextManager[None], failures: Failures, kind: str) -> None:
        self._inside = inside
        self._failures = failures
        self._kind = kind

    def __enter__(self) -> None:
        self._inside.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self._inside.__exit__(kind, error, trace)  # type: ignore[arg-type]
        if not isinstance(error, Exception) or isinstance(error, SamebitsError) or is_from_outside(error):
            return False
        self._failures.add(self._kind, error)
        return True
