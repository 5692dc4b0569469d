"""Isolation of the script from errors of probes: such an error is noted, and the script goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._runtime.frames import is_from_outside
from samebits.errors import SamebitsError
from samebits.records.notes import Note, NoteCode, RecordedPart

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Failures:
    """The first error of each part that could not be recorded."""

    def __init__(self) -> None:
        self._first: dict[tuple[RecordedPart, str], str] = {}

    def add(self, part: RecordedPart, error: BaseException, op: str = "") -> None:
        """Note an error, unless one of its part is noted already.

        Args:
            part: what was being recorded.
            error: the error.
            op: the op that it was about, where each is noted by itself.
        """
        if (part, op) not in self._first:
            try:
                text = str(error).strip().partition("\n")[0]
            except Exception:  # noqa: BLE001 - an exception of the script's own
                text = ""
            self._first[part, op] = type(error).__name__ + (f": {text}" if text else "")

    def notes(self) -> list[Note]:
        """Return a note for each part that could not be recorded."""
        return [
            Note.of(NoteCode.NOT_RECORDED, part.value, text, op)
            for (part, op), text in list(self._first.items())
        ]


class Guard:
    """A context in which a probe records something: its ops are samebits' own, its errors are noted.

    Interrupts pass, as does what a signal handler of the script raises, and errors that samebits raises on
    purpose.

    Args:
        inside: the context that makes ops samebits' own.
        failures: where errors are noted.
        part: what is being recorded.
    """

    __slots__ = ("_failures", "_inside", "_part")

    def __init__(self, inside: AbstractContextManager[None], failures: Failures, part: RecordedPart) -> None:
        self._inside = inside
        self._failures = failures
        self._part = part

    def __enter__(self) -> None:
        self._inside.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self._inside.__exit__(kind, error, trace)  # type: ignore[arg-type]
        if not isinstance(error, Exception) or isinstance(error, SamebitsError) or is_from_outside(error):
            return False
        self._failures.add(self._part, error)
        return True
