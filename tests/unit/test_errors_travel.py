"""Errors of samebits that come from another process."""

from __future__ import annotations

import pickle

from samebits.errors import SamebitsError
from samebits.replay_guard.mismatch import ReplayMismatchError


class OfOneGuardError(ReplayMismatchError):
    """An error whose own part cannot be pickled, as the tensors of a mismatch on a device that is gone."""

    def __init__(self) -> None:
        SamebitsError.__init__(self, "executions differ", slug="replay-mismatch")
        self.mismatch = lambda: None


def test_an_error_arrives_with_its_words_and_its_section():
    for error in (SamebitsError("found \x1b; expected none", slug="usage"), OfOneGuardError()):
        there = pickle.loads(pickle.dumps(error))

        assert type(there) is SamebitsError
        assert (str(there), there.slug) == (str(error), error.slug)
