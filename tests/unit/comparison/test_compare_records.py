"""Comparing record files."""

from __future__ import annotations

from array import array

import pytest
from event_tape import Tape

from samebits.comparison import compare_records
from samebits.errors import SamebitsError
from samebits.recording.events import KINDS
from samebits.recording.store import RecordWriter


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
    assert (finding.op, finding.site.line, finding.cause) == (
        "aten::sum.default",
        8,
        "nondeterministic-kernel",
    )


@pytest.mark.parametrize("levels", [("step", "step"), ("op", "step")])
def test_step_level_names_the_first_event(tmp_path, levels):
    paths = [write(tmp_path / f"{run}.sbr", noisy(run, level)) for run, level in enumerate(levels)]
    (finding,) = compare_records(*paths).findings
    assert (finding.kind, finding.site.line, finding.step) == ("read", 9, 0)


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


def test_a_hostile_record_ends_in_one_line(tmp_path):
    """Links, numbers of tensors and steps that make no sense are no crash."""
    tapes = noisy(1), noisy(2)
    for event_at in (3, 5, 9):
        event = tapes[1].log[event_at]
        for link in event.links:
            object.__setattr__(link, "writer", 10**6)
            object.__setattr__(link, "memory", -5)
        object.__setattr__(event, "step", 2**31 - 5 if event_at == 9 else 0)
    paths = [write(tmp_path / f"{run}.sbr", tape) for run, tape in enumerate(tapes)]
    try:
        result = compare_records(*paths)
    except SamebitsError:
        return
    assert result.verdict in ("different", "not_judged")


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
    assert finding.events == (101, 101)
