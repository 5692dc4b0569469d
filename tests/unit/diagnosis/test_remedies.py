"""Every cause has a remedy, in the user's terms, and names the controls that do the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from finding_support import changed
from patch_support import finding, project, site_of
from sentence_support import text_evidence

from samebits.comparison.results import Comparison, Remedy, Source
from samebits.diagnosis.remedies import op_advice, remedy_for, with_remedies
from samebits.recording.sites import LibraryCall

CAUSES = (
    "unseeded-torch", "unseeded-numpy", "unseeded-python", "os-entropy", "wall-clock", "hash-order",
    "id-order", "race", "nondeterministic-kernel", "uninitialized", "environment", "worker-order",
    "autotuning",    "thread-count",
)  # fmt: skip
INTERVENTIONS = {
    "hash-seed", "layout", "seed-python", "seed-numpy", "seed-torch", "clock", "entropy", "process",
    "file-times", "memory-load", "inodes", "ports", "listing", "completion", "serial-threads", "threads",
    "deterministic", "fill", "workers", "eager", "autotuning",
}  # fmt: skip


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_a_remedy(cause):
    remedy = remedy_for(finding(cause, None))
    assert remedy is not None
    assert remedy.text
    assert set(remedy.controls) <= INTERVENTIONS
    assert remedy.controls


@pytest.mark.parametrize("library", ["torch", "numpy", "python"])
def test_a_seed_that_differs_is_confirmed_by_the_intervention_that_makes_it_the_same(library):
    """`torch.seed()` takes its own from the operating system; the intervention gives it one."""
    remedy = remedy_for(changed(finding(f"unseeded-{library}", None, kind="rng"), op="seed"))
    assert remedy is not None
    assert remedy.controls == (f"seed-{library}",)


def test_an_unknown_cause_has_none():
    assert remedy_for(finding("unknown", None)) is None


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


def test_only_a_draw_in_a_worker_gets_the_advice_for_workers():
    """And not one of a script in a folder that is called so."""
    plain = finding("unseeded-numpy", None, "numpy.random.SeedSequence", kind="batch")
    plain = changed(
        plain,
        evidence=(text_evidence("the loader at /w/workers/train.py:3 gave different contents in each run"),),
    )
    (source,) = plain.origin.sources
    in_worker = changed(plain, sources=(replace(source, in_worker=True),))
    texts = [remedy.text for each in (plain, in_worker) if (remedy := remedy_for(each)) is not None]
    assert [text.startswith("seed it from torch in the worker") for text in texts] == [False, True]


def test_the_change_is_shown_on_the_users_own_line():
    files = project(main="import torch\nx = torch.empty(3)  # <- here\n")
    remedy = remedy_for(finding("uninitialized", site_of(files)), files)
    assert remedy is not None
    assert (remedy.before, remedy.after) == ("x = torch.empty(3)  # <- here", "x = torch.zeros(3)  # <- here")


def test_a_remedy_that_is_there_stays():
    from dataclasses import replace

    known = replace(finding("race", None), remedy=Remedy("known", before="x"))
    remedied = with_remedies(Comparison("different", None, 1, (known, finding("race", None))))
    assert remedied.findings[0].remedy == Remedy("known", before="x")
    assert remedied.findings[1].remedy is not None


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


SEEDS = "numpy.random.SeedSequence"
SEEDED_CALLS = {
    "method": ("env.reset()", SEEDS, ("gym.core.Env.reset", "seed"), "env.reset(seed=0)"),
    "argument": ("f(x, n=3)", "random.Random", ("lib.f", "random_state"), "f(x, n=3, random_state=0)"),
    "none": ("f(x, seed=None)", "random.Random", ("lib.f", "seed"), "f(x, seed=0)"),
    "generator": (
        "f(x)", SEEDS, ("lib.f", "rng"), "f(x, rng=numpy.random.default_rng(0))",
    ),
    "pipeline": (
        "A.Compose([A.Flip()])", "random.Random", ("albumentations.Flip", ""),
        "A.Compose([A.Flip()], seed=0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SEEDED_CALLS)
def test_a_generator_that_a_library_made_is_seeded_where_it_was_asked_for(case):
    """A seed at the head of the script would not reach it: the library's own parameter does."""
    line, op, library, after = SEEDED_CALLS[case]
    files = project(main=f"import lib\ny = {line}  # <-\n")
    remedy = remedy_for(drawn(site_of(files), op, library), files)
    assert remedy is not None
    name, parameter = line.partition("(")[0], library[1] or "seed"
    assert remedy.text == f"pass `{parameter}=` to `{name}(...)`: it makes a generator of its own"
    assert remedy.after == f"y = {after}  # <-"


def test_an_object_is_given_its_seed_where_it_is_made():
    """The line that drew only asked it for something."""
    files = project(main="m = KMeans(5)\ny = m.fit(x)  # <-\n")
    remedy = remedy_for(drawn(site_of(files), SEEDS, ("sk.KMeans", "random_state")), files)
    assert remedy is not None
    assert (remedy.before, remedy.after) == ("m = KMeans(5)", "m = KMeans(5, random_state=0)")


def test_a_call_that_runs_often_draws_its_seeds():
    """The same number each time would give the same episode each time."""
    files = project(main="import numpy as np\nfor i in range(9):\n    x = env.reset()  # <-\n")
    remedy = remedy_for(drawn(site_of(files), "numpy.random.SeedSequence", ("gym.Env.reset", "seed")), files)
    assert remedy is not None
    assert remedy.after == "x = env.reset(seed=np.random.randint(2**31))  # <-"
    assert any("np.random.seed(0)" in line for change in remedy.changes for line in change.after)


def test_a_library_that_draws_from_the_global_generator_may_be_given_a_seed_too():
    """Seeding the global one helps; so does the parameter, which is named beside it."""
    files = project(main="import numpy as np\na, b = split(x)  # <-\n")
    remedy = remedy_for(
        drawn(site_of(files), "numpy.random.permutation", ("sk.split", "random_state")), files
    )
    assert remedy is not None
    assert "numpy.random.seed(0)" in remedy.text
    assert remedy.text.endswith("or pass `random_state=` to `split(...)`")


@pytest.mark.parametrize(("package", "word"), [("optuna", "TPESampler(seed=0)"), ("other", "of its own")])
def test_a_library_without_a_parameter_has_words(package, word):
    """A known library gets advice of its own."""
    remedy = remedy_for(drawn(None, "numpy.random.SeedSequence", (f"{package}.study.optimize", "")))
    assert remedy is not None
    assert word in remedy.text


def test_a_study_of_optuna_gets_a_sampler_with_a_seed():
    """The seed goes where the sampler is made, not where it draws."""
    lines = "import optuna\n\n\ndef objective(trial):\n    return trial.suggest_int('n', 1, 3)  # <-\n\n\n"
    files = project(main=lines + "study = optuna.create_study()\n")
    call = ("optuna.trial._trial.Trial.suggest_int", "")
    remedy = remedy_for(drawn(site_of(files), "numpy.random.SeedSequence", call), files)
    assert remedy is not None
    assert remedy.after == "study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))"


def drawn(site, op, library):
    """An origin with a draw that a library made."""
    cause = "unseeded-python" if op.startswith("random.") else "unseeded-numpy"
    source = Source(op, site, cause, LibraryCall(*library))
    return changed(finding(cause, site), sources=(source,))


def test_a_generator_of_the_users_own_is_seeded_where_it_is_made():
    """No library stands between."""
    own = project(main="import random\nr = random.Random()  # <-\n")
    remedy = remedy_for(finding("unseeded-python", site_of(own), "random.Random"), own)
    assert remedy is not None
    assert remedy.after == "r = random.Random(0)  # <-"
