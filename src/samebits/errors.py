"""The one error that samebits raises, and its exit codes.

Every message says what was found and what was expected, then what to do. The slug names the entry in
docs/messages.md that explains it.
"""

from __future__ import annotations

EXIT_IDENTICAL = 0
EXIT_DIFFERENT = 1
EXIT_NOT_JUDGED = 2


class SamebitsError(Exception):
    """What was found and expected, then what to do.

    Args:
        message: one line for the user.
        slug: the entry in docs/messages.md, such as `record-version`.
    """

    def __init__(self, message: str, *, slug: str) -> None:
        super().__init__(message)
        self.slug = slug


class SamebitsWarning(UserWarning):
    """What was asked for could not be had in full, or was changed afterwards."""
