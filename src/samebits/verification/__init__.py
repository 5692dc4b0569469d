"""Runs a script several times in fresh processes and judges the records."""

from samebits.verification._judge import verify_records as verify_records
from samebits.verification._measure import with_kept_values as with_kept_values
from samebits.verification._request import VerifyRequest as VerifyRequest
from samebits.verification._state import Tools as Tools
from samebits.verification.results import ScriptRun as ScriptRun
from samebits.verification.results import Verification as Verification
from samebits.verification.verify import verify as verify
