"""What the callbacks of all libraries take, and what they say where a library is missing."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError, SamebitsWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.replay_guard.mismatch import Mismatch


@dataclass(frozen=True, slots=True)
class Options:
    """What a user asked for.

    Args:
        record: the record to write; None for none.
        replay_every: how many steps make one that is executed again; None for none.
        on_mismatch: as for `ReplayGuard`.
        exact_resume: whether a resumed training must have the bits of one that never stopped.
    """

    record: str | None
    replay_every: int | None
    on_mismatch: str | Callable[[Mismatch], Any]
    exact_resume: bool

    @classmethod
    def of(
        cls,
        record: str | os.PathLike[str] | None,
        replay_every: int | None,
        on_mismatch: str | Callable[[Mismatch], Any],
        exact_resume: bool,  # noqa: FBT001 - every caller names them
    ) -> Options:
        """Check the arguments of a callback.

        Raises:
            SamebitsError: `replay_every` is not a whole number from 1; `replay-guard`.
        """
        if replay_every is not None and (type(replay_every) is not int or replay_every < 1):
            message = f"`replay_every` is {replay_every!r}: expected a whole number from 1, or None"
            raise SamebitsError(message, slug="replay-guard")
        path = None if record is None else os.fspath(record)
        return cls(path, replay_every, on_mismatch, bool(exact_resume))


def warn(text: str) -> None:
    """Warn of what a callback cannot do."""
    warnings.warn(f"samebits: {text}", SamebitsWarning, stacklevel=3)


def refused(what: str) -> SamebitsError:
    """Return the error that a training cannot be resumed exactly.

    Args:
        what: why, and what to do.
    """
    message = f"this training cannot be resumed with the same bits: {what}. Or pass exact_resume=False"
    return SamebitsError(message, slug="exact-resume")
