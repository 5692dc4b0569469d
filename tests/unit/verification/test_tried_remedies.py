"""A remedy is called tried only where its very lines were run: all interventions in one patch."""

from __future__ import annotations

import pytest
from fake_runs import World, different, finding, request
from sentence_support import notes_of

from samebits._runtime.frames import Site
from samebits.comparison.results import OriginSearch, Source
from samebits.verification import verify
from samebits.verification.plans import BudgetSpent

SCRIPT = """\
import numpy as np
import torch

x = torch.rand(2)
y = np.random.rand(2)
"""
BOTH = ({"seed-torch", "seed-numpy"},)


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    """A script that seeds nothing, which is never run."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return path


def unseeded(script, library: str, line: int):
    """An origin at a draw from a generator that nothing seeds."""
    return finding(site=Site(str(script), line, ""), cause=f"unseeded-{library}")


def world(*findings, helps=BOTH, **fields):
    """Runs that differ at some origins, and are identical with some interventions."""
    verdicts = {"run-2": different(), "op-1b": different(), **fields.pop("verdicts", {})}
    origins = {"op-1b": OriginSearch(findings), **fields.pop("origins", {})}
    return World(verdicts, origins, helps=helps, **fields)


def judged(tmp_path, made, **fields):
    """What verify finds."""
    return verify(request(tmp_path / "records", **fields), tools=made.tools())


def lines_run(made, name="fix-1-1"):
    """The script as a run with the patch had it."""
    ((_, path),) = made.settings(name).overlay
    with open(path, encoding="utf-8") as file:
        return file.read()


def applied(source: str, changes) -> str:
    """A source with the changes of a remedy made, as a reader would from the bottom up."""
    lines = source.splitlines()
    for change in sorted(changes, key=lambda change: -change.line):
        lines[change.line - 1 : change.line - 1 + len(change.before)] = change.after
    return "\n".join(lines) + "\n"


def test_two_causes_have_one_remedy_which_is_what_was_run(tmp_path, script):
    """What is shown holds the seeds of both, in words and lines."""
    made = world(unseeded(script, "torch", 4), unseeded(script, "numpy", 5))
    first, second = judged(tmp_path, made).comparison.findings
    assert "torch.manual_seed(0)" in first.remedy.text
    assert "numpy.random.seed(0)" in first.remedy.text
    assert (first.remedy.confirmed, first.remedy.trial.of) == (True, "change")
    assert applied(SCRIPT, first.remedy.changes) == lines_run(made)
    assert second.remedy.changes == first.remedy.changes


def test_the_change_is_tried_where_recording_every_operation_takes_too_long(tmp_path, script):
    """A script that makes its data element by element; the draw log says all the same what was not seeded."""
    draw = Source("numpy.random.rand", Site(str(script), 5, ""), "unseeded-numpy")
    first = finding(
        kind="loss", op="backward", origin_kind="", events=(None, None), site=Site(str(script), 9, "")
    )

    def run(name):
        if name.startswith("op-"):
            raise BudgetSpent

    made = World({"run-2": different(0, first)}, sources=(draw,), on_run=run)
    comparison = judged(tmp_path, made).comparison
    (found,) = comparison.findings
    assert (found.cause, found.origin.site.line, found.origin.entered_site.line) == ("unseeded-numpy", 5, 9)
    assert "np.random.seed(0)" in lines_run(made)
    assert (found.remedy.confirmed, found.remedy.trial.of) == (True, "change")
    assert any("takes longer" in note for note in notes_of(comparison))
    assert made.limits["op-1a"] < 175  # of 180 seconds


def test_an_intervention_of_which_no_finding_speaks_is_part_of_the_remedy(tmp_path, script):
    """NumPy had to be seeded too, though only torch's draw was found."""
    made = world(unseeded(script, "torch", 4))
    made.verdicts["fix-1-2"] = different()
    found, *_ = judged(tmp_path, made).comparison.findings
    assert "numpy.random.seed(0)" in found.remedy.text
    assert "np.random.seed(0)" in lines_run(made, "fix-2-1")
    assert applied(SCRIPT, found.remedy.changes) == lines_run(made, "fix-2-1")
    assert set(found.remedy.controls) == {"seed-torch", "seed-numpy"}


def test_without_a_patch_it_is_said_that_only_interventions_were_run(tmp_path, script):
    """A race cannot be patched."""
    race = finding(site=Site(str(script), 4, ""), cause="race", origin_kind="order")
    made = world(race, helps=({"completion"},))
    found = judged(tmp_path, made).comparison.findings[0]
    assert (found.remedy.confirmed, found.remedy.changes) == (None, ())
    assert (found.remedy.trial.of, found.remedy.trial.interventions) == ("pins", ("completion",))


def test_lines_with_which_the_runs_still_differ_are_not_shown(tmp_path, script):
    """What the interventions have shown stays."""
    found = unseeded(script, "torch", 4)
    verdicts = {f"fix-{n}-{run}": different(2, found) for n in range(1, 7) for run in ("2", "op-1b")}
    origins = {f"fix-{n}-op-1b": OriginSearch((found,)) for n in range(1, 7)}
    made = world(found, helps=({"seed-torch"},), verdicts=verdicts, origins=origins)
    remedy = judged(tmp_path, made).comparison.findings[0].remedy
    assert (remedy.confirmed, remedy.changes, remedy.trial.of) == (None, (), "pins")
    assert "torch.manual_seed(0)" in remedy.text


def test_a_patch_is_run_no_further_than_the_interventions_were(tmp_path, script):
    """Runs of a long script are ended some steps behind the difference, and the remedy says so."""
    made = world(unseeded(script, "torch", 4), helps=({"seed-torch"},), seconds=30.0)
    remedy = judged(tmp_path, made).comparison.findings[0].remedy
    assert made.settings("fix-1-1").max_steps == remedy.trial.steps == 5
    assert remedy.confirmed


def test_the_result_has_a_fix_only_where_one_was_asked_for(tmp_path, script):
    """The lines are in the remedy."""
    made = world(unseeded(script, "torch", 4), helps=({"seed-torch"},))
    assert judged(tmp_path, made).fix is None
    assert judged(tmp_path / "2", made, fix=True).fix.confirmed


def test_without_interventions_nothing_is_tried(tmp_path, script):
    """Nothing shows the cause."""
    made = world(unseeded(script, "torch", 4))
    remedy = judged(tmp_path, made, intervene=False).comparison.findings[0].remedy
    assert (remedy.trial, remedy.confirmed) == (None, None)
    assert not any(name.startswith("fix") for name in made.names)
