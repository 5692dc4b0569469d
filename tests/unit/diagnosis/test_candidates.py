"""Which interventions are tried for which findings."""

from __future__ import annotations

import finding_support
import pytest

from samebits.causes import Cause, causes_shown_by
from samebits.comparison.results import Source
from samebits.diagnosis.candidates import (
    MECHANISMS,
    cause_of_intervention,
    every_intervention,
    likely_interventions,
)
from samebits.interventions import INTERVENTIONS


def finding(cause="unknown", origin_kind="outside", *sources):
    """An origin with that cause."""
    return finding_support.finding(op="aten::add", cause=cause, origin_kind=origin_kind, sources=sources)


def test_every_intervention_of_the_table_has_a_place():
    """And each cause that an intervention is evidence for suggests that intervention, or a draw does."""
    assert set(MECHANISMS) == {intervention.name for intervention in INTERVENTIONS}


@pytest.mark.parametrize("cause", sorted(set(Cause) - {"unknown", "environment"}))
def test_a_cause_suggests_its_intervention(cause):
    names = {
        intervention.name for intervention in INTERVENTIONS if causes_shown_by(intervention.name)[0] == cause
    }
    suggested = {name for interventions in likely_interventions([finding(cause)]) for name in interventions}
    assert names & suggested


def test_the_source_decides_before_the_cause():
    listed = Source("os.listdir", None, "environment")
    assert likely_interventions([finding("environment", "argument", listed)])[0] == ("listing",)
    pid = Source("os.getpid", None, "environment")
    assert likely_interventions([finding("environment", "argument", pid)])[0] == ("process",)


def test_two_sources_are_tried_one_after_the_other():
    sources = Source("os.urandom", None, "os-entropy"), Source("os.listdir", None, "environment")
    sets = likely_interventions([finding("unknown", "argument", *sources)])
    assert ("entropy",) in sets
    assert ("listing",) in sets


def test_two_sources_that_meet_are_tried_together_at_last():
    sources = Source("time.time", None, "wall-clock"), Source("random.random", None, "unseeded-python")
    sets = likely_interventions([finding("unknown", "argument", *sources)])
    assert sets[-1] == ("clock", "seed-python")
    assert sets.index(("clock",)) < sets.index(("seed-python",)) < len(sets) - 1


def test_without_any_draw_hashes_and_addresses_come_first():
    sets = likely_interventions([finding()])
    assert sets[:2] == (("hash-seed",), ("layout",))
    assert {"memory-load", "ports", "inodes", "file-times"} <= set(sets[2])


def test_several_findings_are_pinned_together_first():
    sets = likely_interventions([finding("wall-clock"), finding("unseeded-torch")])
    assert sets[0] == ("clock", "seed-torch")
    assert ("clock",) in sets


def test_behind_the_first_origin_all_sources_of_another_are_pinned_with_it():
    """The order of the batches is drawn from one generator, and what is in them from another."""
    order = Source("random.shuffle", None, "unseeded-python")
    contents = Source("numpy.random.rand", None, "unseeded-numpy")
    findings = [finding("unseeded-torch", "rng"), finding("unknown", "outside", order, contents)]
    assert likely_interventions(findings)[0] == ("seed-torch", "seed-python", "seed-numpy")


def test_findings_whose_cause_is_known_come_first():
    sets = likely_interventions([finding("unknown", "order"), finding("race", "order")])
    assert sets.index(("serial-threads",)) < sets.index(("layout",))


def test_without_findings_nothing_is_likely():
    assert likely_interventions([]) == ()


def test_every_intervention_begins_with_the_likely_ones_and_keeps_to_the_possible():
    assert every_intervention(("clock", "fill", "layout"), [("fill",)]) == ("fill", "clock", "layout")


def test_an_intervention_shows_the_cause_that_fits_the_entry():
    assert cause_of_intervention(finding("unknown", "kernel"), "threads") == "thread-count"
    assert (
        cause_of_intervention(finding("nondeterministic-kernel", "kernel"), "threads")
        == "nondeterministic-kernel"
    )
    assert cause_of_intervention(finding("unknown", "argument"), "eager") == "autotuning"


def test_without_an_operation_one_thread_shows_a_kernel_that_does_not_repeat():
    """A race that hides while operations are recorded: nothing says that there were more or fewer threads."""
    assert cause_of_intervention(finding("unknown", ""), "threads") == "nondeterministic-kernel"
    assert cause_of_intervention(finding("thread-count", ""), "threads") == "thread-count"
    assert list(MECHANISMS).index("deterministic") < list(MECHANISMS).index("threads")
