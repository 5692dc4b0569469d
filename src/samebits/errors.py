"""The one error that samebits raises, and its exit codes.

Every message says what was found and what was expected, then what to do. The slug names the section of
docs/reference/messages.md that explains it.
"""

from __future__ import annotations

import os
import re
from typing import Any

from samebits._text.printable import printable_lines

EXIT_IDENTICAL = 0
EXIT_DIFFERENT = 1
EXIT_NOT_JUDGED = 2
EXIT_INTERNAL_ERROR = 3  # a bug of samebits; pytest has the same number for its own

_PAGE = "docs/reference/messages.md"
_CHECKOUT = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir)


class SamebitsError(Exception):
    """An error that a user can act on.

    Args:
        message: one line for the user; what a terminal would act on is shown as escape sequences.
        slug: the section of docs/reference/messages.md, such as `record-version`.
    """

    def __init__(self, message: str, *, slug: str) -> None:
        super().__init__(printable_lines(message))
        self.slug = slug

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it with its slug: it comes from other processes, too.

        What a subclass adds may hold anything and stays behind, so such an error arrives as this class.
        """
        return _error, (str(self), self.slug)


def _error(message: str, slug: str) -> SamebitsError:
    return SamebitsError(message, slug=slug)


def pointer(slug: str) -> str:
    """Return the line under an error that says where it is explained.

    It leads to the site of this version, where the package knows its address. In a checkout it leads to the
    page.
    """
    site = documentation_address()
    if site:
        return f"see {site}/reference/messages.html#{slug}, or: samebits explain {slug}"
    if os.path.exists(os.path.join(_CHECKOUT, *_PAGE.split("/"))):
        return f"see {_PAGE}#{slug}, or: samebits explain {slug}"
    return f"see: samebits explain {slug}"


def is_pointer(line: str) -> bool:
    """Tell whether a line is one that `pointer` gives."""
    return re.fullmatch(r"see\b.* samebits explain [a-z0-9-]+", line) is not None


def documentation_address() -> str:
    """Return where the site of this version is, without a slash at its end; empty if that is not known.

    It is the address named Documentation in the table `project.urls` of pyproject.toml, which an installed
    package carries.
    """
    from importlib import metadata  # late: it takes as long as the rest of `import samebits`

    try:
        addresses = metadata.metadata("samebits").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:  # run from a folder of sources
        return ""
    named: dict[str, str] = dict(address.split(", ", 1) for address in addresses)
    return named.get("Documentation", "").rstrip("/")


class SamebitsWarning(UserWarning):
    """A warning that a request could not be met in full, or that a setting was changed afterwards.

    Args:
        message: one line for the user, made printable as the message of `SamebitsError` is.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable_lines(message))
