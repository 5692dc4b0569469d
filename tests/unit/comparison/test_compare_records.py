"""Comparing record files."""

from __future__ import annotations

import contextlib
import random
from array import array
from dataclasses import replace

import pytest
from event_tape import Tape

from samebits.comparison import compare_records
from samebits.comparison.verdict import compare
from samebits.errors import SamebitsError
from samebits.records.events import Link
from samebits.records.kinds import KINDS
from samebits.records.writer import RecordWriter


def write(path, tape, **info):
    """Write a synthetic run to a record file."""
    writer = RecordWriter(path, tape.record(**info).info)
    for event in tape.log:
        sites = [None if site is None else writer.site(site) for site in (event.site, event.forward_site)]
        texts = [writer.text(text) for text in (event.op, event.module, event.thread, event.arguments)]
        links = array("i", [number for link in event.links for number in (link.memory, link.writer)])
        row = (event.seq, KINDS.index(event.kind), event.step, texts[0], *sites, *texts[1:])
        writer.add((*row, writer.layout(event.tensors), b"".join(event.digests), links.tobytes()))
    writer.close()
    return path


def noisy(noise, level="op", steps=2):
    tape = Tape(level=level)
    tape.seed(0)
    w = tape.randn(line=1)
    for _ in range(steps):
        (x,) = tape.batch(["rows"])
        y = tape.op("sum.default", tape.op("mul.Tensor", w, x, line=7, module="fc"), line=8, noise=noise)
        tape.read(y, line=9)
        w = tape.add_(w, y, line=10)
        tape.boundary({"w": w})
    tape.end({"w": w})
    return tape


def test_identical(tmp_path):
    result = compare_records(write(tmp_path / "a.sbr", noisy(1)), write(tmp_path / "b.sbr", noisy(1)))
    assert (result.verdict, result.steps) == ("identical", 2)


def test_op_level_names_the_operation(tmp_path):
    result = compare_records(write(tmp_path / "a.sbr", noisy(1)), write(tmp_path / "b.sbr", noisy(2)))
    assert result.verdict == "different"
    (finding,) = result.findings
    assert (finding.origin.op, finding.origin.site.line, finding.cause) == (
        "aten::sum.default",
        8,
        "nondeterministic-kernel",
    )


@pytest.mark.parametrize("levels", [("step", "step"), ("op", "step")])
def test_step_level_names_the_first_event(tmp_path, levels):
    paths = [write(tmp_path / f"{run}.sbr", noisy(run, level)) for run, level in enumerate(levels)]
    (finding,) = compare_records(*paths).findings
    assert (finding.origin.kind, finding.origin.site.line, finding.origin.step) == ("read", 9, 0)


def test_records_of_two_scripts(tmp_path):
    paths = [write(tmp_path / f"{name}.sbr", noisy(1), command=(f"{name}.py",)) for name in "ab"]
    assert compare_records(*paths).verdict == "not_judged"


def test_no_such_record(tmp_path):
    path = write(tmp_path / "a.sbr", noisy(1))
    with pytest.raises(SamebitsError):
        compare_records(path, tmp_path / "b.sbr")
    (tmp_path / "c.sbr").write_bytes(b"not a record" * 100)
    with pytest.raises(SamebitsError):
        compare_records(path, tmp_path / "c.sbr")


@pytest.mark.parametrize("seed", range(150))
def test_hostile_records_are_no_crash(seed):
    """Links, steps, roles and numbers that make no sense: any answer will do, no exception but our own."""
    rng = random.Random(seed)
    records = [noisy(1, steps=3).record(), noisy(2, steps=3).record()]
    for record in records:
        for _ in range(rng.randrange(1, 12)):
            at = rng.randrange(len(record.listed))
            record.listed[at] = damaged(record.listed[at], rng)
    with contextlib.suppress(SamebitsError):
        assert compare(*records).verdict in ("identical", "different", "not_judged")


def damaged(event, rng):
    """The event with one thing changed, as far as the reader of a file lets it through."""
    number = rng.choice([-1, 0, 1, 5, 7, event.seq, event.seq + 1, 10**6, 2**31 - 1])
    changes = {
        "step": abs(number),
        "kind": rng.choice(KINDS),
        "op": rng.choice(
            ["end", "state", "seed", "aten::copy_.default", "aten::empty.x", "aten::mm.out", "."]
        ),
        "links": tuple(Link(rng.choice([link.memory, number]), number) for link in event.links),
        "tensors": tuple(
            replace(info, role=rng.choice(["in", "out", "rng", "value", "param", "grad"]), shape=(number,))
            for info in event.tensors
        ),
        "site": None,
        "thread": rng.choice(["", "T1"]),
        "arguments": str(number),
    }
    name = rng.choice(sorted(changes))
    if name == "links" and rng.random() < 0.3:
        return replace(event, links=())
    return replace(event, **{name: changes[name]})


def test_many_operations(tmp_path):
    """Events are found in the file without reading it again and again."""
    paths = []
    for run in (1, 2):
        tape = Tape()
        x = tape.op("ones.default", line=1, result=1)
        for i in range(3000):
            x = tape.op("mul.Tensor", x, x, line=2 + i % 7, noise=run if i == 100 else "")
        tape.boundary({"w": x})
        paths.append(write(tmp_path / f"{run}.sbr", tape))
    (finding,) = compare_records(*paths).findings
    assert finding.origin.events == (101, 101)
