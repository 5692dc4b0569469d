"""SARIF of a check against a lock: the paths of a result."""

from __future__ import annotations

import json
from dataclasses import replace

from samebits._runtime.frames import Site
from samebits.causes import Cause
from samebits.commands.lock.entry import LockEntry
from samebits.commands.lock.old_code import Commit
from samebits.commands.lock.outcome import Blame, Change, EntryResult, Hunk, Proof
from samebits.comparison.results import Comparison, Diagnosis, Finding, Origin
from samebits.records.kinds import EventKind
from samebits.report import sarif
from samebits.verification import Verification


def test_a_file_has_one_name_in_a_lock_of_a_subfolder():
    """That from the root of the repository, in the places and in the message."""
    site = Site("/repo/sub/model.py", 4, "forward")
    origin = replace(Origin(EventKind.OP, 0, "aten::mul.Tensor", site, None, None, None), other_site=site)
    finding = Finding(origin, Diagnosis(Cause.UNKNOWN))
    commit = Commit("a" * 40, "train more slowly")
    change = Change(commit, commit, (Hunk("sub/model.py", 3, ("1",), ("2",)),), Proof.TRIED)
    result = EntryResult(
        LockEntry("train", ("train.py",), None, 3, ()),
        "different",
        blame=Blame.BOTH,
        proof=Proof.TRIED,
        change=change,
        operations=Verification(Comparison("different", None, 1, (finding,)), (), (), 0.0),
    )

    (run,) = json.loads(sarif.render([result], "/repo", "/repo/sub"))["runs"]

    (shown,) = run["results"]
    places = [each["physicalLocation"] for each in (*shown["locations"], *shown["relatedLocations"])]
    files = [(each["artifactLocation"]["uri"], each["region"]["startLine"]) for each in places]
    assert files == [("sub/model.py", 3), ("sub/model.py", 4), ("sub/train.py", 1)]
    message = shown["message"]["text"]
    assert message.count("sub/model.py:4") == message.count("model.py:4") == 1
