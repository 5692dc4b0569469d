"""Two versions of a script are compared by the lines that stayed the same, wherever they are now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from event_tape import FakeRecord, Tape
from sentence_support import notes_of

from samebits._runtime.frames import Site
from samebits.comparison._sites import site_key
from samebits.comparison.changed_code import changed_names, code_name, on_common_lines
from samebits.comparison.draw_pairs import draws_before
from samebits.comparison.lookup import Lookup
from samebits.comparison.timeline import timeline
from samebits.comparison.verdict import compare, judge
from samebits.records.events import DRAWN, Link

FOLDER = "/home/u/"
OLD = {"train.py": {"sha256": "1" * 64}, "pkg.model": {"sha256": "2" * 64}, "helpers": {"sha256": "3" * 64}}


def train(rate="0.1", *, level="op", extra=(), printed="", steps=2):
    """A run of some steps; each of its lines has a number of its own.

    `extra` names places where it does more: "model" within the model, "end" after the step.
    """
    tape = Tape(level=level)
    tape.seed(0, line=2)
    weight = tape.outside("w")
    for step in range(steps):
        drawn = tape.randn(line=10)
        if level == "step":
            tape.add("draw", "time.time", [(DRAWN, (rate, step), Link(0, -1))], 11)
        hidden = tape.op("mul.Tensor", drawn, weight, line=21, module="first")
        if "model" in extra:
            hidden = tape.op("neg.default", hidden, line=22, module="first")
        hidden = tape.op("mul.Tensor", hidden, weight, line=23, module="second")
        loss = tape.op("mean.default", hidden, line=12)
        gradient = tape.op("mul.Tensor", loss, weight, line=13, forward=23)
        tape.backward(loss, {"w": gradient}, line=13)
        tape.op("add_.Tensor", weight, gradient, line=14, into=weight, arguments=rate)
        tape.read(tape.outside(("loss", step, printed)), line=15)
        if "end" in extra:
            tape.read(tape.outside(("norm", step)), line=16)
        tape.read(tape.outside(("accuracy", step)), line=17)
        tape.boundary({"w": weight}, line=14)
    tape.end({"w": weight})
    return tape.record()


def version(record, where=lambda site: site, *edited, code=None):
    """The record of a version of the code: its lines are elsewhere, and some files are edited."""
    events = [
        replace(event, **{name: place(getattr(event, name), where) for name in ("site", "forward_site")})
        for event in record.listed
    ]
    table = {name: {"sha256": f"{name} edited"} if name in edited else facts for name, facts in OLD.items()}
    return FakeRecord(replace(record.info, environment={"code": table if code is None else code}), events)


def place(site, where):
    """The script has the lines 1 to 20, the model of a package those above."""
    if site is None:
        return None
    inside = site.line > 20
    return where(Site(FOLDER + ("pkg/model.py" if inside else "train.py"), site.line, site.function))


def inserted(site):
    return replace(site, line=site.line + 1)


def inserted_in_model(site):
    return inserted(site) if site.file.endswith("model.py") else site


def renamed(site):
    return replace(site, function="run", line=site.line + 3)


def moved(site):
    at_home = site.file.endswith("train.py") and site.line >= 12
    return Site(FOLDER + "helpers.py", site.line - 9, "fit") if at_home else inserted(site)


EDITS = {
    "a line inserted": (inserted, "train.py", "pkg.model"),
    "a line inserted in another module": (inserted_in_model, "pkg.model"),
    "a function renamed": (renamed, "train.py", "pkg.model"),
    "a function moved to another file": (moved, "train.py", "helpers", "pkg.model"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_first_difference_is_the_first_operation_whose_bits_differ(edit):
    result = compare(version(train()), version(train("0.2"), *edit))

    origin = result.findings[0].origin
    assert (result.verdict, origin.op, origin.step, origin.site.line) == (
        "different",
        "aten::add_.Tensor",
        0,
        14,
    )
    there = place(Site("", 14, "main"), edit[0])
    assert origin.other_site in ((None,) if there.line == 14 else (there,))
    assert [finding.origin.op for finding in result.findings] == ["aten::add_.Tensor"]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("level", ["op", "step"])
def test_an_edit_without_effect_leaves_nothing_to_tell(edit, level):
    a, b = version(train(level=level)), version(train(level=level), *edit)
    result = judge(a, b)

    assert result.verdict == "identical"
    assert not [
        text for text in notes_of(result) if "run has" in text or (":" in text and "code of" not in text)
    ]
    first, second = on_common_lines(a, b)
    keys = [[site_key(event.site) for event in record.events()] for record in (first, second)]
    assert keys[0] == keys[1]


def test_a_value_that_only_the_log_shows_is_compared_below_an_inserted_line():
    result = judge(version(train()), version(train(printed="other"), inserted, "train.py", "pkg.model"))

    assert (result.verdict, result.state) == ("different", "identical")
    assert [(each.origin.site.line, each.origin.other_site.line) for each in result.reported] == [(15, 16)]


def test_an_inserted_line_that_computes_is_what_only_one_run_has():
    result = compare(version(train()), version(train(extra=["model"]), inserted, "train.py", "pkg.model"))

    origin = result.findings[0].origin
    assert (origin.op, origin.site.line, origin.of_second) == ("aten::neg.default", 23, True)


def test_values_of_an_inserted_line_are_extra_and_shown_at_its_place():
    result = judge(version(train()), version(train(extra=["end"]), inserted, "train.py", "pkg.model"))

    assert result.verdict == "identical"
    assert any("train.py:17" in text for text in notes_of(result))
    assert not any("train.py:16" in text or "train.py:18" in text for text in notes_of(result))


def test_an_inserted_line_has_the_key_of_no_line_of_the_first_run():
    a, b = on_common_lines(version(train()), version(train(extra=["end"]), inserted, "train.py", "pkg.model"))
    norm = next(event for event in b.events() if event.site is not None and event.site.line == 17)
    assert site_key(norm.site) not in {site_key(event.site) for event in a.events()}
    assert site_key(norm.site) != ("train.py", 17, "main")


def test_operations_of_a_line_that_was_split_are_aligned_without_it():
    """What was one line is two, and only one of them can have the key of the old line."""

    def on_one_line(site):
        return replace(site, line=10) if site.line == 12 else site

    a, b = version(train(), on_one_line), version(train("0.2"), inserted, "train.py", "pkg.model")
    lookup = Lookup(*on_common_lines(a, b), (0, 0), (0, 0))

    for event, twin in zip(a.listed, b.listed, strict=True):
        assert event.step > 0 or event.kind == "draw" or lookup.partner_in_b(event) == twin.seq


def test_the_chart_of_steps_counts_values_below_an_inserted_line():
    edited = version(train(printed="other"), inserted, "train.py", "pkg.model")
    assert timeline(version(train()), edited) == timeline(version(train()), version(train(printed="other")))


def test_draws_below_an_inserted_line_are_paired():
    a, b = train(level="step"), train("0.2", level="step")
    changed = version(b, inserted, "train.py", "pkg.model")
    assert [source.op for source in draws_before(version(a), changed)] == ["time.time"]


def test_where_the_code_is_the_same_lines_are_told_by_their_numbers():
    a, b = version(train()), version(train(), inserted)

    assert on_common_lines(a, b) == (a, b)
    lookup = Lookup(a, b, (0, 0), (1, 1))
    assert lookup.partner_in_b(a.listed[0]) is None


def test_a_module_that_only_one_run_imported_is_no_other_code():
    more = version(train(), code={**OLD, "late": {"sha256": "4" * 64}})
    a = version(train())
    assert on_common_lines(a, more) == (a, more)


def test_records_without_digests_of_code_are_compared_by_line():
    a, b = version(train(), code={}), version(train(), inserted, "train.py")
    assert on_common_lines(a, b) == (a, b)


def test_only_code_that_differs_counts_as_changed():
    assert changed_names({"a": "1", "b": "2"}, {"a": "1", "c": "3"}) == frozenset()
    assert changed_names({"a": "1", "b": "2"}, {"a": "9", "c": "3"}) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/home/u/train.py", "train.py"),
        ("/home/u/pkg/model.py", "pkg.model"),
        ("/home/u/pkg/__init__.py", "pkg"),
        ("/home/u/helpers.py", "helpers"),
        ("/home/u/other.py", ""),
        ("<stdin>", ""),
    ],
)
def test_a_file_is_found_among_the_code_of_a_record(file, name):
    assert code_name(file, {"train.py", "pkg", "pkg.model", "helpers", "model"}) == name
