"""What a threat is."""

from __future__ import annotations

from dataclasses import dataclass

EVERY = "every"
PROMISES = ("repeatable", "resumable", "portable", "proven")

BREAKS = "breaks"
MAY_BREAK = "may break"
NOTE = "note"
LEVELS = (BREAKS, MAY_BREAK, NOTE)


@dataclass(frozen=True, slots=True)
class Threat:
    """Something found here that threatens a promise.

    Args:
        promise: one of `PROMISES`, or `every`.
        subject: what it is about, short and stable, such as `PYTHONHASHSEED` or `lightning`.
        found: what was found, and what follows from it, one line.
        why: how it does harm, one or two sentences.
        remedy: the change proposed to the user, one line.
        source: where that is said or was measured.
        level: `breaks` (the promise is not kept here), `may break` (it depends on the script), `note`
            (nothing is wrong; worth knowing when bits differ).
    """

    promise: str
    subject: str
    found: str
    why: str
    remedy: str
    source: str
    level: str
