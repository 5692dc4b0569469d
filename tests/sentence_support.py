"""Notes and evidence as a user reads them, for the tests that look at what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.reasons import Reason, ReasonCode
from samebits.records.notes import Note, NoteCode
from samebits.report import evidence
from samebits.report.notes import sentence
from samebits.report.reasons import sentence_or_none

if TYPE_CHECKING:
    from samebits.comparison.results import Finding


class Noted(Protocol):
    """What has notes."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes."""
        ...


def evidence_of(finding: Finding) -> tuple[str, ...]:
    """The sentences of the evidence of a finding."""
    return tuple(evidence.sentences(finding.diagnosis.evidence))


def confirmed_by(finding: Finding) -> str:
    """The pairs of runs that confirm the cause of a finding, in words; empty where there are none."""
    return evidence.confirmation(finding.diagnosis.confirmed_by)


def text_evidence(text: str) -> Evidence:
    """Evidence whose sentence is this text."""
    return Evidence.of(EvidenceCode.RANKS_DIFFER, text_reason(text))


def notes_of(result: Noted) -> tuple[str, ...]:
    """The sentences of the notes of a comparison, of origins or of a record's facts."""
    return tuple(sentence(note) for note in result.notes)


def text_note(text: str) -> Note:
    """A note whose sentence is this text."""
    return Note.of(NoteCode.TEXT, text)


def text_reason(text: str) -> Reason:
    """A reason whose sentence is this text."""
    return Reason.of(ReasonCode.SEEN_FAILURE, text)


def reason_of(comparison: object) -> str | None:
    """The reason of a comparison as a sentence."""
    return sentence_or_none(comparison.reason)  # type: ignore[attr-defined]
