"""A threat to a promise."""

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
    """A fact about this machine or environment that threatens a promise.

    Args:
        promise: one of `PROMISES`, or `every`.
        subject: its subject, short and stable, such as `PYTHONHASHSEED` or `lightning`.
        found: the fact and its consequence, one line.
        why: the harm that it does, one or two sentences.
        remedy: the change proposed to the user, one line.
        source: the document or measurement that shows it.
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
