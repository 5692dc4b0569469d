"""Where two runs differ by module and step, in a bounded number of rows and columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from event_tape import FakeRecord, Tape

from samebits.comparison import op_timeline as timeline_module
from samebits.comparison.course import course
from samebits.comparison.op_timeline import OpState, op_timeline
from samebits.comparison.step_chart import MOST_COLUMNS, MOST_ROWS, ChartBuilder, RowKind
from samebits.comparison.timeline import timeline

NAMES = ("first.weight", "first.bias", "second.weight")


def run(different: dict[int, tuple[str, ...]], steps: int = 4, **more: object) -> FakeRecord:
    """A run whose parameters have other values in the steps and of the names given."""
    tape = Tape(level="step")
    tape.generator = more.pop("generator", "unseeded")
    for step in range(steps):
        params = {name: tape.outside((name, step, name in different.get(step, ()))) for name in NAMES}
        tape.backward(tape.outside(("loss", step, bool(different.get(step)))), {})
        tape.boundary(params)
    return tape.record(**more)


def rows(chart) -> dict[str, tuple]:
    """What each row says, by its name."""
    return {row.name or row.kind: (row.first, row.most, row.held) for row in chart.rows}


def test_first_step_and_module_are_found():
    """Module `second` from step 1 on, all of `first` from step 2 on."""
    other = run({1: NAMES[2:], 2: NAMES, 3: NAMES})

    chart = timeline(run({}), other)

    assert chart.first == 1
    assert chart.totals == (0, 1, 3, 3)
    assert rows(chart) == {"second": (1, 1, 1), "first": (2, 2, 2), "losses": (1, 1, 1)}
    assert {row.name: row.shares for row in chart.rows}["first"] == (0.0, 0.0, 1.0, 1.0)


def test_equal_runs_have_no_first_difference():
    """And no count."""
    chart = timeline(run({}), run({}))

    assert chart.first is None
    assert set(chart.totals) == {0}


def test_what_the_verdict_leaves_out_is_not_counted():
    """Memory that nobody read."""
    chart = timeline(run({}), run({1: NAMES[2:]}), excluded=["second.weight"])

    assert rows(chart)["second"][:2] == (None, 0)


def test_generators_that_nobody_draws_from_do_not_count():
    """Python's generator has another state in each process, which means nothing."""
    chart = timeline(run({}), run({}, generator="other"))

    assert RowKind.GENERATORS not in {row.kind for row in chart.rows}


def test_a_generator_that_only_the_second_run_draws_from_counts():
    """From the step on in which it does: what it gave has reached that run."""
    other = run({}, generator="other")
    assert RowKind.GENERATORS not in {row.kind for row in timeline(run({}), other).rows}

    listed = [*other.listed]
    moved = next(at for at, event in enumerate(listed) if event.op == "state" and event.step == 2)
    digests = (b"moved" + bytes(11), *listed[moved].digests[1:])
    listed[moved] = replace(listed[moved], digests=digests)
    chart = timeline(run({}), FakeRecord(other.info, listed))

    assert rows(chart)["generators"][0] == 2


def test_steps_of_several_threads_are_not_paired():
    """Their numbers are chance."""
    record = run({})
    listed = [replace(event, thread=f"t{number % 2}") for number, event in enumerate(record.listed)]

    assert timeline(FakeRecord(record.info, listed), record) is None


@pytest.mark.parametrize("steps", [1, MOST_COLUMNS, MOST_COLUMNS + 1, 100_000])
def test_any_number_of_steps_has_few_columns(steps):
    """The first difference and the largest count survive being joined."""
    begin, builder = steps // 2, ChartBuilder()
    for step in range(steps):
        count = 7 if step == begin else 3 if step > begin else 0
        builder.add_state(step, Counter({"m": count}), Counter({"m": 9}))

    chart = builder.chart()

    assert chart.steps == steps
    assert len(chart.totals) <= MOST_COLUMNS
    assert len(chart.totals) * chart.width >= steps
    assert chart.first == begin
    assert chart.totals[begin // chart.width] == 7
    assert chart.rows[0].shares[begin // chart.width] == 7 / 9
    assert chart.totals[-1] in (3, 7)


@pytest.mark.parametrize(
    "names",
    [
        [f"layer.{i}.attention.{part}" for i in range(20) for part in "qkv"],
        [f"model.layer{i}" for i in range(500)],
        [f"m{i}" for i in range(500)],
    ],
)
def test_many_modules_share_rows(names):
    """No tensor is lost, and the module that differs first is still the first."""
    builder = ChartBuilder()
    for step in range(3):
        differing = Counter({names[-1]: 1}) if step else Counter()
        builder.add_state(step, differing, Counter(dict.fromkeys(names, 2)))

    chart = builder.chart()

    assert len(chart.rows) <= MOST_ROWS
    assert sum(row.held for row in chart.rows) == 2 * len(names)
    assert sum(row.joined for row in chart.rows) == len(names) == chart.modules
    assert [row.first for row in chart.rows if row.first is not None] == [1]


class OpRecord(FakeRecord):
    """A record with operations and no captured values."""

    def captured(self):
        """No event has captured tensors."""
        return {}


def ops(noise: str, garbage: int, level: str = "op", extra: int = 0, before: int = 0) -> OpRecord:
    """Memory with former contents, an operation with noise, and one that reads its result.

    Before these, `before` operations that are the same; after these, `extra` ones that are in this run only.
    """
    tape = Tape(level=level)
    for number in range(before):
        tape.op("ones.default", line=100 + number, result=("before", number))
    memory = tape.empty(garbage, line=1)
    x = tape.op("ones.default", line=2, result=1)
    tape.copy_(memory, x, line=3)
    y = tape.op("bmm.default", x, line=4, noise=noise, module="net")
    z = tape.op("relu.default", y, line=5, module="net")
    for number in range(extra):
        tape.op("neg.default", z, line=50 + number)
    tape.backward(z, {"net.w": z})
    tape.boundary({"net.w": z})
    record = tape.record()
    return OpRecord(record.info, record.listed)


def test_operations_that_begin_a_difference_are_told_from_those_that_pass_it_on():
    """Memory that nothing has read yet is no difference."""
    found = op_timeline(ops("a", 1), ops("b", 2))

    assert [(point.op, point.state) for point in found.points] == [
        ("aten::empty.memory_format", OpState.SAME),
        ("aten::ones.default", OpState.SAME),
        ("aten::copy_.default", OpState.SAME),
        ("aten::bmm.default", OpState.BEGINS),
        ("aten::relu.default", OpState.DIFFERS),
    ]
    assert found.measured == 0


def test_memory_that_is_an_origin_begins_a_difference():
    """The verdict has found that it was read."""
    found = op_timeline(ops("a", 1), ops("a", 2), origins=[0])

    assert found.points[0].state == OpState.BEGINS


def test_there_is_no_timeline_without_operations_or_without_a_difference():
    """Step-level records, equal runs."""
    assert op_timeline(ops("a", 1, "step"), ops("b", 1, "step")) is None
    assert op_timeline(ops("a", 1), ops("a", 1)) is None


@pytest.mark.parametrize(("first", "second"), [(3, 0), (0, 2)])
def test_operations_that_only_one_run_has_are_counted(first, second):
    """Those of the first run are shown, those of the second have no place in its order."""
    found = op_timeline(ops("a", 1, extra=first), ops("b", 1, extra=second))

    assert [point.state for point in found.points].count(OpState.ALONE) == first
    assert found.only_second == second


def test_a_difference_behind_very_many_operations_is_shown(monkeypatch):
    """With some of those before it; how many are left out is known."""
    monkeypatch.setattr(timeline_module, "MOST_OPS", 12)
    monkeypatch.setattr(timeline_module, "MOST_LEAD", 3)

    found = op_timeline(ops("a", 1, before=50, extra=40), ops("b", 1, before=50, extra=40))

    assert [point.op for point in found.points[:5]] == [
        "aten::empty.memory_format",
        "aten::ones.default",
        "aten::copy_.default",
        "aten::bmm.default",
        "aten::relu.default",
    ]
    assert len(found.points) == 12
    assert found.left_out == 50 + 5 + 40 - 12


def test_operations_of_a_step_that_is_too_long_are_not_called_lonely(monkeypatch):
    """Nothing is known of them: the events of the step were not paired."""
    monkeypatch.setattr("samebits.comparison.lookup._ALIGNED_EVENTS", 2)

    found = op_timeline(ops("a", 1), ops("b", 1))

    assert {point.state for point in found.points} == {OpState.UNPAIRED}
    assert found.only_second == 0


def test_calls_that_seed_with_ever_other_numbers_are_counted_and_not_all_listed():
    """A script may seed in each of thousands of steps."""
    tape = Tape(level="step")
    for number in (*range(100), 0):
        tape.seed(number)
    record = tape.record()

    found = course(Followed(record.info, record.listed))

    assert (len(found.seedings), found.seedings[0].times, found.unlisted_seedings) == (40, 2, 60)


class Followed(OpRecord):
    """A record whose steps can be counted."""

    def n_steps(self):
        """As many as its facts say."""
        return self.info.steps
