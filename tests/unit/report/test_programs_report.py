"""The report on two programs: every fact is said, in text and in JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

import samebits
from samebits.comparison.programs.judge_programs import judge_programs
from samebits.comparison.programs.outcome import Tolerance
from samebits.recording.distance import sampled
from samebits.recording.kept_values import MOST_ELEMENTS
from samebits.records.reader import RecordReader
from samebits.report.programs import render_text
from samebits.report.programs_json import render_json
from samebits.report.style import Style

X = torch.linspace(-1, 1, 6).reshape(2, 3)
IDS = torch.tensor([1, 2])


@pytest.fixture
def report(tmp_path):
    """The text about two programs that tap some values, one paragraph of each row on one line."""
    made = []

    def make(a, b, *, width=100, as_json=False, **options):
        for name, values in (("a", a), ("b", b)):
            with samebits.record(tmp_path / f"{name}.sbr"):
                for key, value in values:
                    samebits.tap(key, value)
        with RecordReader(tmp_path / "a.sbr") as first, RecordReader(tmp_path / "b.sbr") as second:
            result = judge_programs(first, second, **options)
        made.append(result)
        if as_json:
            return json.loads(render_json(result, "names"))
        return render_text(result, Style(width=width), "/")

    make.result = lambda: made[-1]
    return make


def words(text):
    return " ".join(text.split())


def test_identical(report):
    assert (
        report([("x", X)], [("x", X)])
        == "identical: 1 tensor under 1 name of both programs compared bit for bit"
    )


def test_different(report):
    text = words(report([("ids", IDS), ("x", X), ("y", X)], [("ids", IDS), ("x", X * 2), ("y", X * 4)]))

    assert text.startswith(
        "different: tap x, call 1 is the first tensor that differs; 1 name before it is equal bit"
    )
    assert "A f32[2, 3] at" in text
    assert "difference 6 of 6 elements, by up to 8 388 608 ULP of float32, relative 0.5" in text
    assert "first element at [0, 0]: -1.0 in A, -2.0 in B" in text
    assert "tap y f32[2, 3] 6 / 6 16 777 216 0.75" in text


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (X, X.T, "the same elements, transposed: B is A with its dimensions in the order 1, 0"),
        (X, X.flip(0), "relative 1.2; the same elements in another order"),
        (X, X.bfloat16(), "the dtype differs; rounded to bfloat16 both are equal"),
        (X, X[:, 2:], "B has the last 1 of 3 along dimension 1; these are equal"),
        (X[:1], X, "A has the first 1 of 2 along dimension 0; these are equal"),
        (X, X[0, :2], "the shapes differ, and cannot be compared element by element"),
        (X, X * float("nan"), "6 of 6 elements, some not finite"),
        (IDS, IDS + 1, "difference 2 of 2 elements, relative 0.33"),
        (torch.zeros(2), torch.tensor([0.0, -0.0]), "1 of 2 elements: only the sign of zero differs"),
    ],
)
def test_the_relation_is_said(report, a, b, said):
    assert said in words(report([("x", a)], [("x", b)]))


def test_a_difference_among_elements_that_were_not_kept_is_said(report):
    big = torch.zeros(300_000)
    changed = big.clone()
    changed[min(set(range(300_000)) - set(sampled(300_000, MOST_ELEMENTS).tolist()))] = 1

    text = words(report([("x", big)], [("x", changed)]))

    assert "0 of 262 144 elements that were kept, of 300 000: what differs is among the others" in text


def test_facts_that_are_no_difference_are_notes(report):
    text = words(
        report(
            [("a", X), ("ids", IDS), ("b", X), ("mine", X), ("odd", X)],
            [("b", X), ("ids", IDS[None].int()), ("a", X), ("odd", object())],
        )
    )

    assert text.startswith(
        "identical: 3 tensors under 3 names of both programs compared value by value; 2 names only in"
    )
    assert "- only A has tap mine, tap odd" in text
    assert "- the names come in another order: where A has tap a, B has tap b" in text
    assert "- tap ids, call 1: the same values; the dtype and the shape differ" in text.replace("only ", "")
    assert "- B: recording of a tap `odd` failed" in text


def test_calls(report):
    text = words(report([("x", X), ("x", X), ("x", X)], [("x", X), ("x", X + 1), ("x", X + 2)]))

    assert "tap x, call 2 is the first tensor that differs" in text
    assert "calls 2 of 3 have other bits; the last by 6 of 6 elements" in text
    other = words(report([("x", X), ("x", X)], [("x", X)]))
    assert other == (
        "different: tap x has 2 calls in A and 1 in B; all tensors that both programs have are equal "
        "notes - tap x has 2 calls in A and 1 in B"
    )


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (X.double(), "the last has the same values"),
        (X.bfloat16(), "the last is equal when rounded to bfloat16"),
        (X * 2, "the last by 6 of 6 elements"),
    ],
)
def test_the_last_call_is_described_by_its_relation(report, last, said):
    text = words(report([("x", X), ("x", X)], [("x", X + 1), ("x", last)]))

    assert f"calls 2 of 2 have other bits; {said}" in text


def test_a_sample_that_was_rounded_is_called_one_in_the_table(report):
    big = torch.linspace(0, 1, 300_000)

    text = words(report([("y", X), ("x", big)], [("y", X + 1), ("x", big.bfloat16())]))

    assert "tap x f32[300000] / bf16[300000] rounded, 262 144 kept 0 0" in text


def test_a_dtype_of_a_stranger_is_harmless(report):
    """In the table too."""
    text = render_text(with_dtype(report, "x\x1b[31m"), Style(width=100), "/")

    assert "\x1b" not in text
    assert text.count("x\\x1b[31m[2, 3]") == 2  # of the first tensor, and in the table


def with_dtype(report, dtype):
    """The result on two programs, as if a record had named this dtype."""
    report([("x", X)], [("x", X + 1)])
    result = report.result()
    row = result.rows[0]
    first = dataclasses.replace(row.first, info=dataclasses.replace(row.first.info, dtype=dtype))
    return dataclasses.replace(result, rows=(dataclasses.replace(row, first=first),))


def test_a_tolerance_is_in_the_verdict(report):
    near = X * (1 + 2**-22)

    accepted = report([("x", X)], [("x", near)], tolerance=Tolerance(ulp=4))
    beyond = report([("x", X), ("y", X)], [("x", near), ("y", -X)], tolerance=Tolerance(relative=1e-5))

    assert accepted.startswith(
        "identical within 4 ULP: 1 tensor under 1 name of both programs compared, 1 of these"
    )
    assert "within the tolerance" in accepted
    assert beyond.startswith("different beyond a relative difference of 1e-05: tap y, call 1 is the first")
    assert "1 name before it is equal, or within the tolerance" in words(beyond)
    assert "- within the tolerance, but not equal: tap x" in words(beyond)


def test_what_cannot_be_judged_says_what_to_do(report):
    assert "record both with `--tap-modules '*'`" in words(report([], [("x", X)]))
    assert report([("y", X)], [("x", X)]).startswith("not judged: no name is in both records")


def test_many_names_are_cut(report):
    text = report([(f"n{i}", X) for i in range(30)], [(f"n{i}", X + 1) for i in range(30)])

    assert "and 10 more names (--json lists them)" in text
    assert sum("tap n" in line for line in text.splitlines()) == 20 + 2


def test_names_of_strangers_are_harmless(report):
    text = report([("a\n\x1b[31m" + "x" * 300, X)], [("a\n\x1b[31m" + "x" * 300, X + 1)])

    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_json_has_everything(report):
    found = report([("x", X), ("mine", X)], [("x", X.flip(0))], as_json=True)

    assert (found["verdict"], found["align"], found["names"], found["n_differing"]) == (
        "different",
        "names",
        1,
        1,
    )
    assert found["only_in"] == [[{"source": "tap", "name": "mine"}], []]
    assert found["first"] == found["differing"][0]
    assert found["first"]["a"]["shape"] == [2, 3]
    assert found["first"]["difference"]["relation"] == "reordered"
    assert found["first"]["difference"]["elements"] == 6
    assert found["tolerance"] is None


def test_json_has_no_number_that_json_lacks(report):
    huge = torch.tensor([3e38, -3e38, float("inf"), float("nan")])

    found = report([("x", huge)], [("x", -huge)], as_json=True)

    json.dumps(found, allow_nan=False)
