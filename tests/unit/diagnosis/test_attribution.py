"""What interventions that made runs identical say of the findings, and the sentence about it."""

from __future__ import annotations

from dataclasses import replace

from finding_support import changed, finding
from sentence_support import confirmed_by

from samebits._runtime.frames import Site
from samebits.comparison.results import Confirmation, Remedy, RemedyTrial, Source
from samebits.diagnosis.attribution import attributed, by_source, failed_note, remedied
from samebits.diagnosis.remedies import remedy_for
from samebits.diagnosis.search import SearchResult, Trial
from samebits.report.notes import sentence
from samebits.report.sentences import why

SITE = Site("/w/data.py", 41, "load")
BASE = finding(step=3, op="aten::mul", site=SITE, origin_kind="argument")


def known(cause, **fields):
    """An origin with that cause."""
    return changed(BASE, cause=cause, **fields)


def test_an_open_cause_is_that_of_the_intervention():
    (found,) = attributed([BASE], Confirmation(("hash-seed",), 3, 3))
    assert found.cause == "hash-order"
    assert confirmed_by(found) == "with the hash seed fixed, 3 of 3 pairs of runs were identical"


def test_the_line_is_that_of_the_source_where_there_is_one():
    """The draw log alone had left it open: two sources gave other values."""
    listing = Source("os.listdir", Site("/w/data.py", 9, "names"), "environment")
    names = Source("secrets.token_hex", Site("/w/data.py", 5, "names"), "os-entropy")
    found = changed(BASE, sources=(listing, names))
    (shown,) = attributed([found], Confirmation(("entropy",), 1, 1))
    assert (shown.origin.site.line, shown.origin.entered_site) == (5, SITE)
    two = changed(found, sources=(names, replace(names, site=Site("/w/data.py", 6, "names"))))
    (kept,) = attributed([two], Confirmation(("entropy",), 1, 1))
    assert (kept.origin.site, kept.origin.entered_site) == (SITE, None)


def test_the_line_is_that_which_ends_a_measurement():
    """A clock was read before and after something, in one function; the later reading comes first."""
    ends, starts = (Source("time.time", Site("/w/tune.py", line, "trial"), "wall-clock") for line in (9, 5))
    (found,) = attributed([changed(BASE, sources=(ends, starts))], Confirmation(("clock",), 1, 1))
    assert (found.origin.site.line, found.origin.entered_site) == (9, SITE)
    elsewhere = replace(starts, site=Site("/w/tune.py", 30, "log"))
    (kept,) = attributed([changed(BASE, sources=(ends, elsewhere))], Confirmation(("clock",), 1, 1))
    assert (kept.origin.site, kept.origin.entered_site) == (SITE, None)


def test_each_intervention_speaks_for_the_findings_with_its_cause():
    findings = [known("wall-clock"), known("unseeded-numpy"), BASE]
    first, second, third = attributed(findings, Confirmation(("clock", "seed-numpy"), 1, 1))
    assert (first.cause, second.cause, third.cause) == ("wall-clock", "unseeded-numpy", "unknown")
    assert confirmed_by(first) == confirmed_by(second) != confirmed_by(third) == ""


def test_an_intervention_alone_outweighs_what_the_draws_suggest():
    """A clock was read on the line of the origin, but fixing the entropy is what helped."""
    (found,) = attributed([known("wall-clock")], Confirmation(("entropy",), 1, 1))
    assert found.cause == "os-entropy"


def test_a_pair_that_differed_shows_nothing():
    assert attributed([BASE], Confirmation(("hash-seed",), 2, 3)) == (BASE,)


def test_an_intervention_does_not_confirm_the_remedy_that_does_the_same():
    """It was another thing that was run: what was pinned is kept beside the remedy."""
    finding = known("hash-order", remedy=Remedy("sort it", controls=("hash-seed",)))
    remedy = remedied(finding, Confirmation(("hash-seed",), 3, 3, steps=7)).remedy
    assert remedy is not None
    assert (remedy.confirmed, remedy.pairs) == (None, 0)
    assert remedy.trial == RemedyTrial("pins", identical=True, pairs=3, interventions=("hash-seed",), steps=7)
    assert remedied(finding, Confirmation(("clock",), 3, 3)) == finding


def test_what_was_tried_in_vain_is_listed():
    trials = (Trial(("clock",), "different"), Trial(("clock", "layout"), "different"))
    note = failed_note(SearchResult(None, trials))
    assert note is not None
    assert note.arguments == ("clock", "layout")
    assert "clock, layout" in sentence(note)
    assert failed_note(SearchResult(None, (Trial(("clock",), "failed"),))) is None


def test_the_sentence_names_line_reason_and_proof():
    drawn = Source("numpy.random.rand", SITE, "unseeded-numpy")
    finding = known("unseeded-numpy", sources=(drawn,))
    (found,) = attributed([finding], Confirmation(("seed-numpy",), 3, 3))
    assert why(found) == (
        "step 3: /w/data.py:41 drew from NumPy's global generator, which nothing seeds; with NumPy's "
        "generators seeded, 3 of 3 pairs of runs were identical"
    )


def test_sentences_tell_sources_apart():
    fresh = Source("numpy.random.SeedSequence", SITE, "unseeded-numpy")
    assert "without a seed" in why(known("unseeded-numpy", sources=(fresh,)))
    seeded = known("unseeded-torch", kind="rng", op="seed")
    assert "a different seed in each run" in why(seeded)
    clock = Source("time.time", SITE, "wall-clock")
    assert "read the clock (time.time)" in why(known("wall-clock", sources=(clock,)))
    assert "a different number" in why(BASE)
    assert "code outside Python" in why(changed(BASE, site=None))


def test_an_intervention_alone_explains_all_that_differs():
    """Nothing is left with it, so nothing differed on its own, whatever the draws suggested."""
    listing = Source("pathlib.Path.glob", Site("/w/data.py", 17, "load"), "environment")
    names = Source("tempfile.mkstemp", Site("/w/data.py", 11, "write"), "os-entropy")
    later = Site("/w/train.py", 28, "forward")
    other = known("environment", site=listing.site, entered_site=later, sources=(listing, names))
    first, second, third = attributed([BASE, other, BASE], Confirmation(("entropy",), 2, 2))
    assert (first.cause, second.cause, third.cause) == ("os-entropy",) * 3
    assert confirmed_by(first)
    assert not confirmed_by(second)
    assert (second.origin.site, second.origin.entered_site) == (names.site, later)


def test_it_speaks_for_the_first_finding_though_another_has_its_cause():
    first, second = attributed([BASE, known("wall-clock")], Confirmation(("clock",), 1, 1))
    assert (first.cause, second.cause) == ("wall-clock", "wall-clock")
    assert confirmed_by(first) == confirmed_by(second) != ""


def test_a_source_that_the_intervention_does_not_fix_gives_no_remedy():
    """Of two facts of the machine on one line the number of the process was free to differ."""
    pid, memory = (Source(op, SITE, "environment") for op in ("os.getpid", "psutil.Process.memory_info"))
    (found,) = attributed([known("environment", sources=(pid, memory))], Confirmation(("memory-load",), 2, 2))
    assert found.origin.sources == (memory,)
    remedy = remedy_for(found)
    assert remedy is not None
    assert "what the machine has free" in remedy.text


def test_two_sources_that_meet_in_one_place_are_two_findings():
    """An index came from a sampler that was seeded from the clock, and another from Python's generator."""
    clock = Source("time.time", Site("/w/train.py", 11, "main"), "wall-clock")
    drawn = Source("random.randrange", SITE, "unseeded-python")
    found = changed(BASE, sources=(clock, drawn))
    first, second = attributed([found], Confirmation(("clock", "seed-python"), 1, 1))
    assert (first.cause, first.origin.site, first.origin.entered_site) == ("wall-clock", clock.site, SITE)
    assert (second.cause, second.origin.site, second.origin.entered_site) == ("unseeded-python", SITE, None)
    assert confirmed_by(first) == confirmed_by(second) != ""


def test_memory_that_a_generator_fills_at_the_same_line_is_no_source_of_its_own():
    """`env.reset()` makes a generator without a seed, which draws into an array that NumPy left unwritten."""
    seeded = Source("numpy.random.SeedSequence", SITE, "unseeded-numpy")
    memory = Source("numpy.empty", SITE, "uninitialized")
    elsewhere = replace(memory, site=Site("/w/train.py", 11, "main"))
    (found,) = by_source([changed(BASE, cause="unknown", sources=(seeded, memory))])
    assert (found.cause, found.origin.site, found.origin.sources) == ("unseeded-numpy", SITE, (seeded,))
    assert by_source([changed(BASE, cause="unknown", sources=(seeded, elsewhere))]) == ()


def test_what_an_operation_shows_by_itself_is_patched_at_once():
    kernel = known("nondeterministic-kernel", origin_kind="kernel", sources=())
    assert by_source([kernel]) == (kernel,)
    assert by_source([changed(kernel, origin_kind="outside")]) == ()
    clock = Source("time.time", SITE, "wall-clock")
    assert by_source([changed(kernel, sources=(clock,))]) == ()


def test_what_one_kind_of_draw_shows_is_patched_at_once_and_what_two_show_is_not():
    clock, pid = Source("time.time", SITE, "wall-clock"), Source("os.getpid", SITE, "environment")
    one = known("wall-clock", sources=(clock,))
    assert by_source([one]) == (one,)
    assert by_source([changed(one, sources=(clock, pid))]) == ()


def test_the_sentence_names_the_line_that_drew_and_where_it_went():
    """Not the line that only took the value."""
    drawn = Source("random.sample", Site("/w/train.py", 1, "f"), "unseeded-python")
    found = why(known("unseeded-python", sources=(drawn,)))
    assert found == (
        f"step 3: /w/train.py:1 drew from Python's global generator, which nothing seeds, and it reached "
        f"{SITE.file}:{SITE.line}"
    )
    assert "reached" not in why(known("unseeded-python", sources=(replace(drawn, site=SITE),)))


def test_a_file_of_the_run_before_is_no_fact_of_the_machine():
    left = Source("/w/last.pt", SITE, "environment", is_left_file=True)
    assert why(known("environment", sources=(left,))).endswith(
        "read what the previous run had written (/w/last.pt)"
    )


def test_of_several_lines_that_drew_the_one_of_the_finding_is_named():
    elsewhere = Source("time.time", Site("/w/train.py", 1, "f"), "wall-clock")
    here = replace(elsewhere, site=SITE)
    assert why(known("wall-clock", sources=(elsewhere, here))) == (
        f"step 3: {SITE.file}:{SITE.line} read the clock (time.time)"
    )


def test_a_seed_that_another_generator_gave_is_laid_to_that_generator():
    """`torch.manual_seed(random.randint(0, 9))`: Python's generator was given no seed at all."""
    seeding = changed(known("unseeded-python"), kind="rng", op="seed", origin_kind="rng")
    drawn = Source("random.randint", SITE, "unseeded-python")
    assert "drew from Python's global generator" in why(changed(seeding, sources=(drawn,)))
    assert "gave Python's generator a different seed" in why(seeding)
