"""Data files that a run read and whose contents are not known, each with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from collections.abc import Mapping


class WhyUnread(StrEnum):
    """The reason why the contents of a data file are not known."""

    SKIPPED = "skipped"
    """Ctrl-C ended the hashing before it."""
    GONE = "gone"
    """There was no such file any more when the run ended."""
    DENIED = "denied"
    """This user may not read it."""
    CHANGED = "changed"
    """Something wrote into it after the run had opened it, or while it was hashed."""
    FAILED = "failed"
    """The system gave another error."""
    UNTOLD = "untold"
    """The record does not say: an earlier release wrote it."""


@dataclass(frozen=True)
class Unread:
    """The data files of a run without a digest.

    Args:
        files: by name.
        unlisted: how many more there are that are not named, by reason.
    """

    files: dict[str, WhyUnread] = field(default_factory=dict)
    unlisted: dict[WhyUnread, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[WhyUnread, int]:
        """The number of files for each reason that occurs, the most frequent first."""
        return dict((Counter(self.files.values()) + Counter(self.unlisted)).most_common())


def why_not_read(error: OSError) -> WhyUnread:
    """Return the reason that an error of the system stands for."""
    if isinstance(error, PermissionError):
        return WhyUnread.DENIED
    gone = isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError))
    return WhyUnread.GONE if gone else WhyUnread.FAILED


def unread_in(data: object) -> Unread:
    """Return the data files without a digest that a record tells of.

    Args:
        data: `environment["data"]` of a record, which may hold anything. Earlier releases wrote names only.
    """
    table: Mapping[str, object] = data if isinstance(data, dict) else {}
    files, unlisted = table.get("unread"), table.get("unlisted")
    if isinstance(files, list):
        files = dict.fromkeys(map(str, files))
    named = files if isinstance(files, dict) else {}
    counted = unlisted if isinstance(unlisted, dict) else {}
    return Unread(
        {str(name): _reason(why) for name, why in named.items()},
        {_reason(why): number for why, number in counted.items() if isinstance(number, int) and number > 0},
    )


def _reason(value: object) -> WhyUnread:
    try:
        return WhyUnread(value)
    except ValueError:
        return WhyUnread.UNTOLD
