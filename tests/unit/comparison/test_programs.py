"""Two programs judged by the tensors that both name."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
import torch

import samebits
from samebits.comparison.programs import _series
from samebits.comparison.programs import judge_programs as judge_programs_module
from samebits.comparison.programs.judge_programs import judge_programs
from samebits.comparison.programs.outcome import How, Name, Relation, Source, Tolerance, Why
from samebits.comparison.reasons import ReasonCode
from samebits.recording._recorder import Recorder
from samebits.records.creation import finalize
from samebits.records.reader import RecordReader

X, Y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
NEXT = X.nextafter(torch.tensor(9.0))


@pytest.fixture
def compare(tmp_path):
    """Record two functions, and compare their records."""

    def run(a, b, *, status=("finished", "finished"), by_shape=False, tolerance=None, values=True):
        paths = []
        for name, act, end in zip("ab", (a, b), status, strict=True):
            path = tmp_path / f"{name}.sbr"
            with samebits.record(path, values=values):
                act()
            if end != "finished":
                finalize(path, status=end)
            paths.append(path)
        with RecordReader(paths[0]) as first, RecordReader(paths[1]) as second:
            return judge_programs(first, second, by_shape=by_shape, tolerance=tolerance)

    return run


RECORD = Recorder.tap


def without_digest(names):
    """A recorder that cannot read the tensors of some names."""

    def tap(recorder, name, frame, tensors, paths, source):
        digest = recorder.observe
        if name in names:
            recorder.observe = lambda *given: (digest(*given)[0], bytes(16))
        try:
            return RECORD(recorder, name, frame, tensors, paths, source)
        finally:
            recorder.observe = digest

    return tap


def taps(*named):
    return lambda: [samebits.tap(name, value) for name, value in named]


def tap_name(name):
    return Name(Source.TAP, name)


def test_equal_tensors_of_equal_names_are_identical(compare):
    result = compare(taps(("x", X), ("y", Y), ("x", Y)), taps(("x", X.clone()), ("y", Y), ("x", Y)))

    assert (result.verdict, result.why, result.names, result.tensors) == ("identical", None, 2, 3)


def test_the_first_in_the_order_of_a_is_named(compare):
    result = compare(
        taps(("in", X), ("late", X), ("early", Y), ("late", Y)),
        taps(("late", X), ("in", X), ("late", X), ("early", X)),
    )

    assert (result.verdict, result.why) == ("different", Why.DIFFERS)
    assert [(row.first.name.name, row.first.call) for row in result.rows] == [("early", 0), ("late", 1)]
    assert result.before == 2
    assert result.order == (tap_name("in"), tap_name("late"))


def test_names_of_one_program_are_facts_and_no_difference(compare):
    result = compare(taps(("x", X), ("mine", Y)), taps(("x", X), ("yours", Y)))

    assert result.verdict == "identical"
    assert (result.only_first, result.only_second) == ((tap_name("mine"),), (tap_name("yours"),))


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ((), (("x", X),), Why.NOTHING_NAMED),
        ((), (), Why.NOTHING_NAMED),
        ((("x", X),), (("y", X),), Why.NO_COMMON_NAME),
    ],
)
def test_without_a_common_name_nothing_is_judged(compare, a, b, why):
    result = compare(taps(*a), taps(*b))

    assert (result.verdict, result.why) == ("not_judged", why)


def test_another_number_of_calls_is_a_difference(compare):
    result = compare(taps(("x", X), ("x", Y)), taps(("x", X)))

    assert (result.verdict, result.why) == ("different", Why.OTHER_CALLS)
    assert [tuple(calls) for calls in result.other_calls] == [(tap_name("x"), 2, 1)]


@pytest.mark.parametrize(
    ("status", "verdict", "why"),
    [
        (("finished", "failed"), "not_judged", Why.NOT_WHOLE),
        (("finished", "running"), "not_judged", Why.NOT_WHOLE),
        (("finished", "stopped"), "identical", None),
        (("failed", "finished"), "different", Why.OTHER_CALLS),
    ],
)
def test_a_run_that_ended_early_may_have_fewer_calls(compare, status, verdict, why):
    result = compare(taps(("x", X), ("x", Y)), taps(("x", X)), status=status)

    assert (result.verdict, result.why) == (verdict, why)


def test_a_difference_stays_one_where_a_run_failed(compare):
    result = compare(taps(("x", X)), taps(("x", Y)), status=("finished", "failed"))

    assert (result.verdict, result.why) == ("different", Why.DIFFERS)
    assert [ending.code for ending in result.endings] == [ReasonCode.RUN_FAILED]


def test_another_form_of_the_same_values_is_no_difference(compare):
    ids = torch.tensor([[3, 4]])
    result = compare(taps(("ids", ids), ("x", X)), taps(("ids", ids[0].int()), ("x", X)))

    assert result.verdict == "identical"
    assert [row.distance.relation for row in result.same_values] == [Relation.SAME_VALUES]


def test_a_tolerance_is_part_of_the_result(compare):
    programs = taps(("x", X), ("y", Y)), taps(("x", NEXT), ("y", Y + 1))

    strict = compare(*programs)
    lax = compare(*programs, tolerance=Tolerance(ulp=1))

    assert [row.first.name.name for row in strict.rows] == ["x", "y"]
    assert [row.first.name.name for row in lax.rows] == ["y"]
    assert [row.distance.max_ulp for row in lax.accepted] == [1]
    assert compare(taps(("x", X)), taps(("x", NEXT)), tolerance=Tolerance(ulp=1)).verdict == "identical"


def test_a_tolerance_ends_at_the_first_call_beyond_it(compare):
    theirs = taps(("x", NEXT), ("x", Y), ("x", NEXT))

    result = compare(taps(("x", X), ("x", X), ("x", X)), theirs, tolerance=Tolerance(ulp=1))

    assert (result.rows[0].first.call, result.rows[0].differing) == (1, 3)
    assert result.rows[0].last.max_ulp == 1


def test_what_could_not_be_read_in_both_is_not_equal():
    """Both then have the same digest, of zeros; after it, one that is equal."""
    pair = []
    for _ in range(2):
        series = _series.Series()
        for seq, digest in enumerate((bytes(16), b"x" * 16)):
            series.add(SimpleNamespace(seq=seq, step=0, thread="", digests=(digest,)), 0, per_step=False)
        pair.append(series)
    assert judge_programs_module._Pair(tap_name("x"), tap_name("x"), *pair).unequal() == [(0, 0)]


def test_a_path_that_is_another_without_its_prefix_is_not_lost():
    """`net.drop` becomes `drop`, and a module of that name is there already."""
    named = {Name(Source.MODULE, name): _series.Series() for name in ("net.drop", "drop")}
    assert len(_series._shortened(named, "net.")) == 2


def test_other_names_are_matched_by_contents_and_then_by_shape(compare):
    ours = taps(("in", X), ("weight", torch.ones(2, 3)), ("out", Y))
    theirs = taps(("x", X), ("w", torch.zeros(3, 2)), ("y", Y), ("extra", torch.ones(7)))

    result = compare(ours, theirs, by_shape=True)

    assert [(m.first.name, m.second.name, m.how) for m in result.matched] == [
        ("in", "x", How.CONTENTS),
        ("weight", "w", How.SHAPE),
        ("out", "y", How.CONTENTS),
    ]
    assert (result.rows[0].first.name.name, result.rows[0].second.name.name) == ("weight", "w")
    assert result.only_second == (tap_name("extra"),)


def test_of_several_tensors_of_a_shape_the_most_like_are_matched(compare):
    """One program taps before and after each activation, the other only after it."""
    before, after = torch.linspace(-9, 9, 8), torch.linspace(-9, 9, 8).tanh()

    result = compare(
        taps(("pre1", before), ("post1", after), ("pre2", before * 2), ("post2", after + 2)),
        taps(("block1", after * 1.001), ("block2", after + 2.001)),
        by_shape=True,
    )

    assert [(m.first.name, m.second.name) for m in result.matched] == [
        ("post1", "block1"),
        ("post2", "block2"),
    ]
    assert result.only_first == (tap_name("pre1"), tap_name("pre2"))


def test_another_shape_is_never_matched(compare):
    result = compare(taps(("a", X)), taps(("b", torch.ones(3))), by_shape=True)

    assert (result.verdict, result.why) == ("not_judged", Why.NOTHING_MATCHES)


def test_names_are_matched_before_shapes(compare):
    result = compare(
        taps(("a", X), ("b", Y)), taps(("b", X), ("c", Y)), by_shape=True, tolerance=Tolerance(ulp=0)
    )

    assert [row.first.name.name for row in result.rows] == ["a", "b"]
    assert [(m.first.name, m.second.name) for m in result.matched] == [("a", "c")]


def test_the_order_among_threads_does_not_count(compare):
    def act(*values):
        for value in values:
            thread = threading.Thread(target=samebits.tap, args=("x", value), name=f"t{value[0]}")
            thread.start()
            thread.join()

    assert compare(lambda: act(X, Y), lambda: act(Y, X)).verdict == "identical"
    other = compare(lambda: act(X, Y), lambda: act(Y, NEXT))
    assert [(row.first.call, row.second.call) for row in other.rows] == [(0, 1)]


class Task(torch.nn.Module):
    """Holds the model of a test."""

    def __init__(self, net):
        super().__init__()
        self.net = net


def train(*, wrap=False, decay=0.0):
    def act():
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        held = Task(net) if wrap else net
        optimizer = torch.optim.SGD(held.parameters(), lr=0.1, weight_decay=decay)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).square().sum().backward()
            optimizer.step()

    return act


def test_the_state_is_compared_by_name_and_step(compare):
    result = compare(train(), train(decay=0.01))

    assert result.rows[0].first.name == Name(Source.PARAM, "0.weight")
    assert (result.rows[0].first.step, result.rows[0].calls, result.rows[0].differing) == (0, 3, 3)
    assert result.before == 5  # the loss and four gradients
    assert result.rows[0].distance.relation is Relation.VALUES
    assert compare(train(), train(decay=0.01), values=False).rows[0].distance.relation is Relation.NOT_KEPT


def test_several_optimizers_of_one_backward_pass_make_one_step(compare):
    def several():
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in net]
        for _ in range(3):
            net.zero_grad()
            net(torch.ones(1, 2)).square().sum().backward()
            for optimizer in optimizers:
                optimizer.step()

    result = compare(train(), several)

    assert (result.verdict, result.other_calls, result.tensors) == ("identical", (), 27)


@pytest.mark.parametrize("swap", [False, True])
def test_a_common_beginning_of_all_names_is_left_out(compare, swap):
    programs = (train(wrap=True), train()) if swap else (train(), train(wrap=True))

    result = compare(*programs)

    assert (result.verdict, result.names) == ("identical", 9)
    assert result.prefixes == (("net.", "") if swap else ("", "net."))


def test_where_the_difference_grows_most_is_named(compare):
    steps = [("a", 1e-7), ("b", 2e-7), ("c", 0.5), ("d", 0.6)]
    result = compare(
        taps(*[(name, torch.ones(2, dtype=torch.float64)) for name, _ in steps]),
        taps(*[(name, torch.ones(2, dtype=torch.float64) + by) for name, by in steps]),
    )

    assert result.rows[result.jump].first.name.name == "c"


def test_what_could_not_be_read_is_not_matched_by_contents(compare, monkeypatch):
    """Both have a digest of zeros, whatever their contents were."""

    def act(name):
        def run():
            samebits.tap(name, torch.ones(3))
            samebits.tap(f"{name}2", X)

        return run

    monkeypatch.setattr(Recorder, "tap", without_digest(("a", "b")))
    result = compare(act("a"), act("b"), by_shape=True)

    assert [(m.first.name, m.second.name, m.how) for m in result.matched] == [
        ("a", "b", How.SHAPE),
        ("a2", "b2", How.CONTENTS),
    ]
    assert (result.verdict, result.why, result.unreadable) == ("not_judged", Why.UNREADABLE, 1)


def test_a_sample_is_named_though_another_call_is_further_apart(compare):
    """The row of a name shows one call; what was judged by a part of its elements may be another one."""
    big = torch.linspace(0, 1, 300_000)

    result = compare(
        taps(("x", big), ("x", X)), taps(("x", big.bfloat16()), ("x", NEXT)), tolerance=Tolerance(ulp=1)
    )

    assert [row.first.call for row in result.accepted] == [1]
    assert result.sampled == (tap_name("x"),)
