"""A confirmed cause is shown at the line where it sits, if the source has one such line."""

from __future__ import annotations

from dataclasses import replace

import finding_support
import pytest
from finding_support import changed
from patch_support import finding, project, site_of
from sentence_support import evidence_of

from samebits._runtime.frames import Site
from samebits.comparison.results import Confirmation, Source
from samebits.diagnosis.attribution import attributed
from samebits.diagnosis.remedies import at_source_line

CONFIRMED = Confirmation(("clock",), 2, 2)
SUM_OVER_SET = """
    enabled = {"a", "b"}

    def total(out):
        loss = 0
        for name in enabled:  # planted
            loss = loss + TERMS[name](out)
        return loss

    loss = total(model(x))
    loss.backward()  # <-
"""
ELSEWHERE = """
    import helper

    for batch in helper.batches():
        model(batch)  # <-
"""
HELPER = """
    import numpy as np

    class Batches:
        def make(self, n):
            rows = np.empty((n, 3))  # planted
            return rows

    def batches():
        yield Batches().make(3)
"""


def shown(cause, files, **fields):
    """The finding at the marked line, confirmed, after the search for its line."""
    confirmed = changed(finding(cause, site_of(files, function="<module>")), confirmed_by=CONFIRMED, **fields)
    return confirmed, at_source_line(confirmed, files)


def test_the_order_of_a_set_is_where_it_is_taken():
    files = project(main=SUM_OVER_SET)
    before, after = shown("hash-order", files)
    assert after.origin.site == site_of(files, "planted", "total")
    assert after.origin.entered_site == before.origin.site
    assert evidence_of(after) == (f"it entered at /code/main.py:{before.origin.site.line} (aten::mm)",)


def test_memory_is_left_unwritten_in_another_file():
    files = project(main=ELSEWHERE, helper=HELPER)
    _, after = shown("uninitialized", files, kind="batch")
    assert after.origin.site == site_of(files, "planted", "Batches.make")


def test_without_proof_it_stays():
    files = project(main=SUM_OVER_SET)
    unconfirmed = finding("hash-order", site_of(files))
    assert at_source_line(unconfirmed, files) is unconfirmed


@pytest.mark.parametrize("cause", ["hash-order", "uninitialized", "race", "unseeded-torch"])
def test_where_nothing_or_another_cause_is_seen_it_stays(cause):
    files = project(main=SUM_OVER_SET.replace("enabled = {", "enabled = [").replace('b"}', 'b"]'))
    before, after = shown(cause, files)
    assert after is before


def test_of_two_lines_none_is_chosen():
    twice = SUM_OVER_SET.replace("    loss.backward()", "    names = list({1, 2})\n    loss.backward()")
    files = project(main=twice.replace("loss = total(model(x))", "loss = total(model(x), list(enabled))"))
    before, after = shown("hash-order", files)
    assert after is before


def test_a_line_of_its_own_stays():
    files = project(main="for name in {'a', 'b'}:  # <-\n    use(name)\nother = list({1, 2})\n")
    before, after = shown("hash-order", files)
    assert after is before


CLOCK = """
    import time

    for update in range(8):
        start = time.perf_counter()  # starts
        step()
        took = time.perf_counter() - start  # planted
        count = int(count / took)
"""


@pytest.mark.parametrize("at", ["starts", "planted"])
def test_a_duration_is_where_it_is_measured(at):
    files = project(main=CLOCK)
    sites = [site_of(files, mark, "<module>") for mark in ("starts", "planted")]
    sources = tuple(Source("time.perf_counter", site, "wall-clock") for site in sites)
    stands = site_of(files, at, "<module>")
    measured = changed(finding("wall-clock", stands), confirmed_by=CONFIRMED, sources=sources)
    assert at_source_line(measured, files).origin.site == sites[1]


def test_two_measurements_are_not_told_apart():
    files = project(main=CLOCK.replace("# starts", "- zero  # starts"))
    sites = [site_of(files, mark, "<module>") for mark in ("starts", "planted")]
    sources = tuple(Source("time.perf_counter", site, "wall-clock") for site in sites)
    measured = changed(finding("wall-clock", sites[0]), confirmed_by=CONFIRMED, sources=sources)
    assert at_source_line(measured, files).origin.site == sites[0]


def test_a_listing_of_random_names_gives_way_to_who_made_them():
    files = project(main="glob()  # listing\nmkstemp()  # names\nTemporaryDirectory()  # folder\n")
    causes = {"listing": "environment", "names": "os-entropy", "folder": "os-entropy"}
    sources = tuple(Source(mark, site_of(files, mark), cause) for mark, cause in causes.items())
    entered = site_of(files, "listing")
    stands = changed(
        finding("environment", sources[0].site), sources=sources, entered_site=replace(entered, line=40)
    )
    (moved,) = attributed([stands], Confirmation(("entropy",), 2, 2))
    assert (moved.cause, moved.origin.site, moved.origin.entered_site.line) == (
        "os-entropy",
        sources[1].site,
        40,
    )


SHARED = """
import torch.multiprocessing as mp
def main():
    model = make()
    SHARE
    started = [mp.Process(target=work, args=(model, n)) for n in range(2)]
    print(model(x))
"""


@pytest.mark.parametrize(
    ("share", "line"), [("model.share_memory()", 4), ("model.eval()", 5), ("a.share_memory_(); b.eval()", 4)]
)
def test_a_race_of_processes_is_where_the_memory_is_shared_or_they_are_started(share, line):
    files = project(train=SHARED.replace("SHARE", share))
    entered = Site(files.script, 6, "main")
    race = finding_support.finding(op="aten::t", site=entered, cause="race", origin_kind="outside")
    shown = at_source_line(changed(race, confirmed_by=CONFIRMED), files)
    assert (shown.origin.site.line, shown.origin.entered_site) == (line, entered)
    assert at_source_line(race, files) == race
