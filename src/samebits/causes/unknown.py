"""There is no evidence of any other cause."""

from __future__ import annotations

from samebits.causes.cause import Cause
from samebits.causes.specification import PinEvidence, Specification

SPECIFICATION = Specification(
    cause=Cause.UNKNOWN,
    sentence="",
    evidence=(PinEvidence("seed-libraries", acts=False),),
    no_patch="the cause is not known, and nothing on the lines that lead there is suspicious by itself",
)
