"""Every cause has a remedy, in the user's terms, and names the controls that do the same."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from patch_support import finding, project, site_of

from samebits.comparison.results import Comparison, Remedy
from samebits.diagnosis.remedies import op_advice, remedy_for, with_remedies
from samebits.diagnosis.remedy_table import TABLE

CAUSES = (
    "unseeded-torch", "unseeded-numpy", "unseeded-python", "os-entropy", "wall-clock", "hash-order",
    "id-order", "race", "nondeterministic-kernel", "uninitialized", "environment", "worker-order",
    "autotuning",    "thread-count",
)  # fmt: skip
PINS = {
    "hash-seed", "layout", "seed-python", "seed-numpy", "seed-torch", "clock", "entropy", "process",
    "file-times", "memory-load", "inodes", "ports", "listing", "completion", "serial-threads", "threads",
    "deterministic", "fill", "workers", "eager", "autotuning",
}  # fmt: skip


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_a_remedy(cause):
    remedy = remedy_for(finding(cause, None))
    assert remedy is not None
    assert remedy.text
    assert set(remedy.controls) <= PINS
    assert remedy.controls


@pytest.mark.parametrize("library", ["torch", "numpy", "python"])
def test_a_seed_that_differs_is_confirmed_by_the_pin_that_makes_it_the_same(library):
    """`torch.seed()` takes its own from the operating system; the pin gives it one."""
    remedy = remedy_for(replace(finding(f"unseeded-{library}", None, kind="rng"), op="seed"))
    assert remedy is not None
    assert remedy.controls == (f"seed-{library}",)


def test_an_unknown_cause_has_none():
    assert remedy_for(finding("unknown", None)) is None


def test_rows_are_sentences_with_patterns_that_compile():
    for row in TABLE:
        assert row.cause in CAUSES
        re.compile(row.pattern)
        assert not row.text.endswith(".")
        assert "{" not in row.text.replace("f(x)", "")


@pytest.mark.parametrize(
    ("cause", "op", "word"),
    [
        ("unseeded-numpy", "numpy.random.SeedSequence", "default_rng(0)"),
        ("unseeded-numpy", "numpy.random.rand", "numpy.random.seed(0)"),
        ("os-entropy", "uuid.uuid4", "identifier"),
        ("os-entropy", "secrets.choice", "`random`, seeded"),
        ("wall-clock", "time.perf_counter", "count steps"),
        ("race", "multiprocessing.pool.imap_unordered", "`imap`"),
        ("race", "concurrent.futures.as_completed", "list of futures"),
        ("environment", "os.listdir", "sorted("),
        ("environment", "os.getpid", "process number"),
    ],
)
def test_the_source_refines_the_remedy(cause, op, word):
    remedy = remedy_for(finding(cause, None, op))
    assert remedy is not None
    assert word in remedy.text


def test_the_change_is_shown_on_the_users_own_line():
    files = project(main="import torch\nx = torch.empty(3)  # <- here\n")
    remedy = remedy_for(finding("uninitialized", site_of(files)), files)
    assert remedy is not None
    assert (remedy.before, remedy.after) == ("x = torch.empty(3)  # <- here", "x = torch.zeros(3)  # <- here")


def test_a_remedy_that_is_there_stays():
    from dataclasses import replace

    known = replace(finding("race", None), remedy=Remedy("known", confirmed=True))
    found = with_remedies(Comparison("different", None, 1, (known, finding("race", None))))
    assert found.findings[0].remedy == Remedy("known", confirmed=True)
    assert found.findings[1].remedy is not None


def test_an_op_that_throws_has_something_in_its_place():
    assert "torch.sort" in op_advice("aten::median.dim")
    assert "index_add" in op_advice("aten::bincount.default")
    assert op_advice("aten::index_put.default") == ""
    assert op_advice("aten::mm.default") == ""


@pytest.mark.parametrize(
    ("cause", "line", "word"),
    [
        ("hash-order", "fold = hash(name) % 4", "checksum"),
        ("hash-order", "names = list(set(names))", "sort the set"),
        ("id-order", "shard = id(sample) % 4", "numbers of their own"),
        ("id-order", "key = repr(sample)", "__repr__"),
    ],
)
def test_what_the_line_calls_refines_the_remedy(cause, line, word):
    """Hashes and addresses leave no draw."""
    files = project(main=f"{line}  # <-\n")
    remedy = remedy_for(finding(cause, site_of(files)), files)
    assert remedy is not None
    assert word in remedy.text


@pytest.mark.parametrize("line", ["t = A.Compose([A.Flip()])", "t = A.Compose(steps)"])
def test_a_generator_that_a_library_made_is_seeded_where_it_was_asked_for(line):
    """A seed at the head of the script would not reach it."""
    files = project(main=f"import albumentations as A\n{line}  # <-\n")
    found = finding("unseeded-python", site_of(files), "random.Random")
    remedy = remedy_for(found, files)
    assert remedy is not None
    assert remedy.text.startswith("what is called here makes a generator of its own")
    assert (remedy.controls, remedy.after) == (("seed-python",), "")
    own = project(main="import random\nr = random.Random()  # <-\n")
    remedy = remedy_for(finding("unseeded-python", site_of(own), "random.Random"), own)
    assert remedy is not None
    assert remedy.after == "r = random.Random(0)  # <-"
