"""How far two runs are apart step by step: which values are measured, and what is said of the others."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from samebits.comparison import growth as growth_module
from samebits.comparison.growth import GrowthKind, growth
from samebits.digest import digest_many
from samebits.recording._recorder import describe
from samebits.recording.distance import sampled
from samebits.recording.kept_values import MOST_ELEMENTS, pack
from samebits.records.events import RunInfo
from samebits.records.kinds import KINDS, EventKind, Role
from samebits.records.reader import RecordReader
from samebits.records.writer import RecordWriter
from samebits.report.html.growth_section import growth_section

ONE_UP = torch.nextafter(torch.ones(1), torch.tensor(2.0))


def write_record(path, weights, *, kept=True):
    """A record with one parameter, `net.weight`, which has these values after the steps."""
    info = RunInfo(("train.py",), "step", "running", 0, steps=len(weights))
    writer = RecordWriter(path, info)
    none = writer.text("")
    for step, weight in enumerate(weights):
        tensors = (dataclasses.replace(describe(Role.PARAM, "net.weight", weight)),)
        op = writer.text("SGD.step")
        head = (step, KINDS.index(EventKind.STEP), step, op, None, None, none, none, none)
        writer.add((*head, writer.layout(tensors), digest_many([weight]), b""))
        if kept:
            writer.capture([(step, 0, pack(weight, digest_many))])
    writer.update(status="finished", exit_status=0, steps=len(weights))
    writer.close()
    return path


def measured(tmp_path, ours, theirs, *, kept=True):
    """The distances of two runs."""
    a, b = write_record(tmp_path / "a.sbr", ours), write_record(tmp_path / "b.sbr", theirs, kept=kept)
    with RecordReader(a) as first, RecordReader(b) as second:
        return growth(first, second)


def test_the_largest_distance_of_each_step_is_measured(tmp_path):
    same, far = torch.ones(2), torch.tensor([1.0, 1.5])
    found = measured(tmp_path, [same] * 4, [same, torch.cat([ONE_UP, same[1:]]), far, same])

    assert [(point.kind, point.step, point.ulp) for point in found.points] == [
        (GrowthKind.WEIGHTS, 1, 1),
        (GrowthKind.WEIGHTS, 2, 1 << 22),
    ]
    row = found.rows[0]
    assert (row.name, row.first, row.first_ulp, row.most, row.most_ulp) == ("net", 1, 1, 2, 1 << 22)
    assert (found.stride, found.measured, found.unkept, found.unmeasurable, found.last) == (1, 2, 0, 0, None)


def test_what_is_not_finite_has_no_distance(tmp_path):
    found = measured(tmp_path, [torch.ones(1)] * 2, [torch.tensor([math.inf]), ONE_UP])

    assert [point.step for point in found.points] == [1]
    assert found.unmeasurable == 1
    assert "1 pair of tensors has no distance in ULP" in " ".join(
        block.text for block in growth_section(found).blocks if block.kind == "paragraph"
    )


def test_a_tensor_whose_differing_elements_are_not_kept_is_not_measured(tmp_path):
    """Of a large tensor some elements are kept, and these can be equal."""
    total = 2 * MOST_ELEMENTS
    one, other = torch.ones(total), torch.ones(total)
    other[min(set(range(16)) - set(sampled(total, MOST_ELEMENTS)[:16].tolist()))] = 2
    found = measured(tmp_path, [one], [other])

    assert (found.measured, found.unkept, found.unmeasurable) == (0, 1, 0)


def test_records_without_values_are_not_measured(tmp_path):
    assert measured(tmp_path, [torch.ones(1)], [ONE_UP], kept=False) is None


def test_of_many_steps_some_are_measured_and_the_first_that_differs(tmp_path, monkeypatch):
    monkeypatch.setattr(growth_module, "MOST_STEPS", 4)
    same = torch.ones(1)
    found = measured(tmp_path, [same] * 9, [same, *[ONE_UP] * 8])

    assert (found.stride, [point.step for point in found.points]) == (3, [1, 3, 6])


@pytest.mark.parametrize("most", [1, 2])
def test_too_many_tensors_are_not_measured_and_this_is_said(tmp_path, monkeypatch, most):
    monkeypatch.setattr(growth_module, "MOST_TENSORS", most)
    found = measured(tmp_path, [torch.ones(1)] * 4, [ONE_UP] * 4)

    assert (found.measured, found.last) == (most, most - 1)
    assert any("Measured up to step" in getattr(block, "text", "") for block in growth_section(found).blocks)
