"""The one error that samebits raises, and its exit codes.

Every message says what was found and what was expected, then what to do. The slug names the section of
docs/reference/messages.md that explains it.
"""

from __future__ import annotations

from samebits._text.printable import printable_lines

EXIT_IDENTICAL = 0
EXIT_DIFFERENT = 1
EXIT_NOT_JUDGED = 2
EXIT_INTERNAL_ERROR = 3  # a bug of samebits; pytest has the same number for its own


class SamebitsError(Exception):
    """An error that a user can act on.

    Args:
        message: one line for the user; what a terminal would act on is shown as escape sequences.
        slug: the section of docs/reference/messages.md, such as `record-version`.
    """

    def __init__(self, message: str, *, slug: str) -> None:
        super().__init__(printable_lines(message))
        self.slug = slug


def pointer(slug: str) -> str:
    """Return the line under an error that says where it is explained."""
    return f"see docs/reference/messages.md#{slug}, or: samebits explain {slug}"


class SamebitsWarning(UserWarning):
    """A warning that a request could not be met in full, or that a setting was changed afterwards.

    Args:
        message: one line for the user, made printable as the message of `SamebitsError` is.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable_lines(message))
