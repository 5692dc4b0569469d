"""The one error that samebits raises, and its exit codes.

Every message says what was found and what was expected, then what to do. The slug names the entry in
docs/reference/messages.md that explains it.
"""

from __future__ import annotations

from samebits._text.printable import printable_lines

EXIT_IDENTICAL = 0
EXIT_DIFFERENT = 1
EXIT_NOT_JUDGED = 2
EXIT_INTERNAL_ERROR = 3  # a bug of samebits; pytest has the same number for its own


class SamebitsError(Exception):
    """What was found and expected, then what to do.

    Args:
        message: one line for the user; what a terminal would act on is shown as escape sequences.
        slug: the entry in docs/reference/messages.md, such as `record-version`.
    """

    def __init__(self, message: str, *, slug: str) -> None:
        super().__init__(printable_lines(message))
        self.slug = slug


def pointer(slug: str) -> str:
    """The line under an error that says where its entry is."""
    return f"see docs/reference/messages.md#{slug}, or: samebits explain {slug}"


class SamebitsWarning(UserWarning):
    """What was asked for could not be had in full, or was changed afterwards.

    Args:
        message: one line for the user, made printable as that of `SamebitsError` is.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable_lines(message))
