"""The report on the ranks of a run."""

from __future__ import annotations

import json

from finding_support import finding
from sentence_support import text_evidence, text_note, text_reason

from samebits._runtime.frames import Site
from samebits.comparison.ranks import LeftOut, LeftOutCode, RankComparison
from samebits.comparison.results import Comparison
from samebits.report.ranks import _LEFT_OUT, launch_rows, left_out_words, render, render_json, render_launches
from samebits.report.style import Style
from samebits.verification import ScriptRun, Verification
from samebits.verification.rank_launches import LaunchComparison

SITE = Site("/code/train.py", 12, "main")
PARTED = RankComparison(
    Comparison(
        "different",
        text_reason("w: ranks 0 and 1 diverge at step 2"),
        4,
        (
            finding(
                kind="step",
                step=2,
                op="SGD.step",
                site=SITE,
                evidence=(text_evidence("w"), text_evidence("why\x1b[2J")),
                names=("w", "b"),
            ),
            finding(
                kind="batch", op="DataLoader", site=SITE, evidence=(text_evidence("4 samples came twice"),)
            ),
        ),
        (text_note("a note"),),
    ),
    (0, 1),
    ("w", "b"),
    (LeftOut(LeftOutCode.SHARDS, ("e", "f", "g", "h")), LeftOut(LeftOutCode.BUFFERS)),
)


def test_what_differs_is_said_in_order():
    """The verdict, the line, why, and what was not compared; no control characters."""
    text = render(PARTED, Style(), "/code")

    assert text.startswith("different: w: ranks 0 and 1 diverge at step 2\n\n  train.py:12 in main")
    order = [
        "why",
        "in that step: w, b",
        "4 samples came",
        "compared: w, b",
        "not compared: e, f, g and 1 more: shards, each rank has its own part",
        "not compared: buffers: each rank's own",
        "note: a note",
    ]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert "\x1b" not in text


def test_equal_ranks():
    """How many ranks, steps and parameters."""
    result = RankComparison(Comparison("identical", None, 1), (0, 1, 2), ("w",))

    assert render(result, Style(), "/").startswith("identical: ranks 0-2, 1 step, 1 parameter equal at each")
    launches = render_launches(Comparison("identical", None, 3), (0, 1), Style())
    assert launches == "identical: 2 launches, ranks 0 and 1 each, 3 steps"


def test_the_object_for_machines():
    """That of `compare`, with three keys more."""
    fields = json.loads(render_json(PARTED))

    assert (fields["verdict"], fields["ranks"], fields["compared"]) == ("different", [0, 1], ["w", "b"])
    assert [finding["kind"] for finding in fields["findings"]] == ["step", "batch"]


def launches(verdict: str) -> LaunchComparison:
    """Two launches of two ranks."""
    found = Comparison(verdict, None, 3, final_digest=("aa", "bb"))
    ranks = {
        rank: Verification(
            found,
            ("a.py",),
            tuple(
                ScriptRun("compare", f"/w/.samebits/x/run-{n}.ranks/rank-{rank}.sbr", 0, 1.0) for n in (1, 2)
            ),
            0.0,
        )
        for rank in (0, 1)
    }
    return LaunchComparison(ranks, found)


def test_launches_end_with_the_digest_of_each_rank_and_the_records():
    text = launch_rows(launches("identical"), Style(), "/w")
    assert "final digest  rank 0: aa" in text
    assert "rank 1: aa" in text
    assert "records       .samebits/x/run-1.ranks" in text
    assert ".samebits/x/run-2.ranks" in text
    assert "final digest" not in launch_rows(launches("different"), Style(), "/w")


def test_each_reason_to_leave_tensors_out_is_said():
    """With their names, and the same in the JSON object."""
    assert set(_LEFT_OUT) == set(LeftOutCode)
    assert left_out_words(LeftOut(LeftOutCode.OWN, ("w", "b"))) == (
        "w, b: different on the ranks from the start and not wrapped by DistributedDataParallel, so taken "
        "for each rank's own"
    )
    assert json.loads(render_json(PARTED))["left_out"] == [
        "e, f, g and 1 more: shards, each rank has its own part",
        "buffers: each rank's own (DistributedDataParallel sends rank 0's before each forward pass)",
    ]
