"""Written records are read back: values, order, filters, sizes, and from any thread."""

from __future__ import annotations

import itertools
import os
import sqlite3
import struct
import threading
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from record_support import INFO, digest, infos, listing, row, write
from sentence_support import notes_of, text_note

from samebits._runtime.frames import Site
from samebits.digest.pending import pending
from samebits.errors import SamebitsError
from samebits.records import writer as writer_module
from samebits.records.creation import finalize
from samebits.records.events import NO_WRITER, Event, Link, TensorInfo
from samebits.records.kinds import KINDS, EventKind, Role
from samebits.records.reader import RecordReader
from samebits.records.writer import RecordWriter

if TYPE_CHECKING:
    from pathlib import Path


def test_an_event_comes_back_whole(tmp_path: Path) -> None:
    """Every field of an event, a tensor description and a link survives."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    site, forward = Site("/a/ü.py", 7, "step"), Site("/a/b.py", 2**31 - 1, "<lambda>")
    described = (TensorInfo("in", "", "bfloat16", ()), TensorInfo("out", "x.0", "int64", (0, 2**40)))
    numbers = (writer.site(site), writer.site(forward))
    texts = (writer.text("net.fc1"), writer.text("worker\x00'; DROP TABLE event; --"), writer.text("alpha=1"))
    links = struct.pack("<iiii", 5, NO_WRITER, 6, 3)
    head = (2**40, KINDS.index("op"), 4, writer.text("aten::mm.default"), *numbers, *texts)
    writer.add((*head, writer.layout(described), bytes(range(32)), links))
    head = (2**40 + 1, *head[1:4], None, None, *texts)
    writer.add((*head, writer.layout(described), bytes(range(32)), b""))
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        events = list(reader.events())

    expected = Event(
        seq=2**40,
        kind="op",
        step=4,
        op="aten::mm.default",
        site=site,
        forward_site=forward,
        module="net.fc1",
        thread="worker\x00'; DROP TABLE event; --",
        arguments="alpha=1",
        tensors=described,
        digests=(bytes(range(16)), bytes(range(16, 32))),
        links=(Link(5, NO_WRITER), Link(6, 3)),
    )
    assert events == [expected, replace(expected, seq=2**40 + 1, site=None, forward_site=None, links=())]


def test_events_are_filtered_by_kind_and_step(tmp_path: Path) -> None:
    """events() yields what the filters let through, in order, whatever the size of the record."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    for seq in range(1500):
        writer.add(row(writer, seq, kind=("batch", "step", "read")[seq % 3]))
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        everything = list(reader.events())
        some = list(reader.events(kinds=("read", "batch"), first_step=100, last_step=300))

    assert [event.seq for event in everything] == list(range(1500))
    assert [event.seq for event in some] == [seq for seq in range(300, 903) if seq % 3 != 1]
    assert all(event.digests == (digest(event.seq, 0), digest(event.seq, 1)) for event in everything)


def test_events_of_different_layouts_keep_their_own_digests(tmp_path: Path) -> None:
    """Events with and without tensors and links share a stored row without mixing."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    counts = [0, 3, 1, 0, 2]
    for seq, count in enumerate(counts):
        links = struct.pack("<ii", seq, seq) * count if seq % 2 else b""
        writer.add((*row(writer, seq, count)[:-1], links))
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        events = list(reader.events())

    assert [event.digests for event in events] == [
        tuple(digest(seq, position) for position in range(count)) for seq, count in enumerate(counts)
    ]
    assert [event.links for event in events] == [(), (Link(1, 1),) * 3, (), (), ()]


def test_one_event_is_found_by_its_number(tmp_path: Path) -> None:
    """event() returns the event, or says that there is none."""
    write(tmp_path / "a.sbr", 700)

    with RecordReader(tmp_path / "a.sbr") as reader:
        assert reader.event(613).digests == (digest(613, 0), digest(613, 1))
        with pytest.raises(SamebitsError, match="holds no event 700: ") as caught:
            reader.event(700)

    assert caught.value.slug == "record-no-event"


def test_events_written_out_of_order_are_read_in_order(tmp_path: Path) -> None:
    """Threads number their events before they add them, so a late one may cross a commit."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    for group in ([0, 1, 4], [2, 3, 9], [7, 5], [6, 8]):
        for seq in group:
            writer.add(row(writer, seq))
        writer.flush()
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        assert [event.seq for event in reader.events()] == list(range(10))


def test_threads_may_write_at_the_same_time(tmp_path: Path) -> None:
    """No event is lost or doubled when several threads add events and new texts."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    numbers = itertools.count()

    def work(name: str) -> None:
        for turn in range(1500):
            seq = next(numbers)
            writer.add(row(writer, seq, op=f"{name}.{turn % 50}"))
            if turn % 97 == 0:
                writer.flush()

    threads = [threading.Thread(target=work, args=(str(index),)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        events = list(reader.events())
    assert not writer.broken
    assert [event.seq for event in events] == list(range(6000))
    assert all(event.digests == (digest(event.seq, 0), digest(event.seq, 1)) for event in events)
    assert {event.op for event in events} == {f"{name}.{turn}" for name in range(4) for turn in range(50)}


def test_the_run_is_described(tmp_path: Path) -> None:
    """update() replaces fields at once, and a text that UTF-8 cannot hold does no harm."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    writer.update(
        status="failed",
        exit_status=-9,
        failure="caf\udce9",
        notes=(text_note("one"), text_note("two\udce9")),
        steps=12,
    )

    with RecordReader(tmp_path / "a.sbr") as reader:
        info = reader.info
    writer.close()

    assert (info.status, info.exit_status, info.steps) == ("failed", -9, 12)
    assert (info.failure, notes_of(info)) == ("caf\\udce9", ("one", "two\udce9"))
    assert (info.command, info.environment) == (INFO.command, INFO.environment)


def test_texts_that_utf8_cannot_hold_are_kept_readable(tmp_path: Path) -> None:
    """A script's name may hold any byte."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    site = writer.site(Site("/a/caf\udce9.py", 1, "f"))
    writer.add((0, 0, 0, writer.text("x"), site, None, *[writer.text("")] * 3, writer.layout(()), b"", b""))
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        (event,) = reader.events()
    assert event.site == Site("/a/caf\\udce9.py", 1, "f")


def test_captures_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A captured tensor is kept whole, even when it is too large for one value of SQLite."""
    monkeypatch.setattr(writer_module, "CAPTURE_PART", 100)
    blobs = {0: safetensors(1000), 3: safetensors(0), 1: safetensors(20)}
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    for position, blob in blobs.items():
        writer.capture([(5, position, blob)])
    writer.capture([(6, 0, safetensors(4))])
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        assert reader.captures(5) == blobs
        assert reader.captures(7) == {}


def safetensors(size: int) -> bytes:
    header = b'{"value":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
    return len(header).to_bytes(8, "little") + header + os.urandom(size)


def test_a_closed_record_is_a_single_file_and_closing_twice_is_fine(tmp_path: Path) -> None:
    """The log is folded in, and what is added afterwards is dropped quietly."""
    writer = write(tmp_path / "a.sbr", 10, close=False)
    assert listing(tmp_path) == ["a.sbr", "a.sbr-log"]
    writer.close()
    assert listing(tmp_path) == ["a.sbr"]
    before = (tmp_path / "a.sbr").read_bytes()
    assert before[18:20] == b"\1\1"  # no log is expected: plain SQLite makes no files beside it

    writer.add(row(writer, 10))
    writer.flush()
    writer.capture([(1, 0, b"")])
    writer.update(steps=99)
    writer.close()

    assert (tmp_path / "a.sbr").read_bytes() == before
    assert writer.broken == ""


def test_plain_sqlite_reads_it(tmp_path: Path) -> None:
    """The example of docs/reference/record-format.md: no part of samebits is needed to read a record."""
    write(tmp_path / "a.sbr", 5)
    db = sqlite3.connect(tmp_path / "a.sbr")
    texts = dict(db.execute("SELECT id, value FROM text"))
    rows = db.execute("SELECT heads, digests FROM event ORDER BY first_seq").fetchall()
    db.close()

    (heads, digests) = rows[0]
    seen = [(seq, step, texts[op]) for seq, step, op, *_ in struct.iter_unpack("<qiiiiiiiiBB", heads)]
    assert seen == [(seq, seq // 3, "SGD.step") for seq in range(5)]
    assert digests[:16] == digest(0, 0)


@pytest.mark.parametrize(("count", "level"), [(60, "step"), (4, "op"), (1, "op")])
def test_a_tensor_costs_at_most_100_bytes_on_disk(tmp_path: Path, count: int, level: str) -> None:
    """Also when every event is from another line, and when ops carry links and new argument texts."""
    path = tmp_path / "a.sbr"
    writer = RecordWriter(path, INFO)
    events = 3000
    for seq in range(events):
        site = writer.site(Site("/home/user/project/model/attention.py", seq, "forward"))
        head = (seq, 2, seq, writer.text("aten::addmm.default"), site, site, writer.text("net.encoder"))
        rest = (writer.text(""), writer.text(f"beta=1, alpha=0.{seq % 100}"), writer.layout(infos(count)))
        links = os.urandom(8 * count) if level == "op" else b""
        writer.add((*head, *rest, os.urandom(16 * count), links))
    writer.close()

    assert path.stat().st_size / (events * count) < 100


def test_slow_steps_cost_at_most_100_bytes_a_tensor_too(tmp_path: Path) -> None:
    """A commit for each step must not leave pages mostly empty."""
    path = tmp_path / "a.sbr"
    writer = RecordWriter(path, INFO)
    for seq in range(600):
        writer.add(row(writer, seq, 10))
        writer.flush()
    writer.close()

    assert path.stat().st_size / 6000 < 100


def test_memory_does_not_grow_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that never repeat are forgotten, and a value met again after that still reads the same."""
    monkeypatch.setattr(writer_module, "REMEMBERED_BYTES", 100_000)
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    tracemalloc.start()
    for seq in range(20_000):
        writer.add(row(writer, seq, op=f"op {seq} {'x' * 200}" if seq % 2 else "again"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    writer.close()

    assert peak < 2_000_000
    with RecordReader(tmp_path / "a.sbr") as reader:
        names = [event.op for event in reader.events()]
    assert names == [f"op {seq} {'x' * 200}" if seq % 2 else "again" for seq in range(20_000)]


def test_a_signal_handler_may_use_the_writer_inside_a_commit(tmp_path: Path) -> None:
    """Its calls do nothing while a commit is under way, and lose nothing."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    original = writer_module.pack
    calls = []

    def interrupted(events: list[tuple[int, ...]]) -> tuple[object, ...]:
        if not calls:
            calls.append(len(events))
            writer.add(row(writer, 1))
            writer.flush()
            writer.update(steps=3)
            writer.close()
        return original(events)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "pack", interrupted)
        writer.add(row(writer, 0))
        writer.flush()
    writer.close()

    assert (calls, writer.broken) == ([1], "")
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert [event.seq for event in reader.events()] == [0, 1]
        assert reader.info.steps == 3


@pytest.mark.parametrize("last", [2, 9])
def test_an_interrupt_inside_a_commit_loses_and_doubles_nothing(tmp_path: Path, last: int) -> None:
    """Ctrl-C may come before the commit, and also after it but before the buffers are emptied."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    writer.add(row(writer, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "pack", interrupt)
        with pytest.raises(KeyboardInterrupt):
            writer.flush()
    writer.add(row(writer, 6, op="later"))
    rows = list(writer._rows)
    pending = list(writer._texts.pending)
    writer.flush()
    writer._rows[:0] = rows
    writer._texts.pending[:0] = pending
    writer.add(row(writer, last))
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        events = [(event.seq, event.op) for event in reader.events()]
    assert events == sorted([(5, "SGD.step"), (6, "later"), (last, "SGD.step")])


def interrupt(events: object) -> tuple[object, ...]:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "change",
    [
        lambda row: (2**70, *row[1:]),
        lambda row: (*row[:2], "step", *row[3:]),
        lambda row: (*row[:-2], None, b""),
        lambda row: row[:5],
    ],
)
def test_a_row_that_cannot_be_stored_breaks_the_writer_only(tmp_path: Path, change: Any) -> None:
    """add() never raises; `broken` says in one line what happened; what was committed stays."""
    writer = write(tmp_path / "a.sbr", 5, close=False)
    writer.add(change(row(writer, 5)))
    writer.flush()
    for seq in range(6, 1000):
        writer.add(row(writer, seq))
    writer.close()

    assert "could not be written any further (" in writer.broken
    assert "\n" not in writer.broken
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert [event.seq for event in reader.events()] == list(range(5))


def test_finalize_replaces_fields(tmp_path: Path) -> None:
    """finalize() describes the end of a run whose writer died."""
    writer = write(tmp_path / "a.sbr", 20, close=False)
    with pytest.raises(SamebitsError, match="is being written by another run") as caught:
        finalize(tmp_path / "a.sbr", status="failed")
    assert caught.value.slug == "record-busy"
    writer.close()

    finalize(tmp_path / "a.sbr", status="failed", exit_status=137, failure="killed")

    with RecordReader(tmp_path / "a.sbr") as reader:
        assert (reader.info.status, reader.info.exit_status, reader.info.steps) == ("failed", 137, 7)
        assert len(list(reader.events())) == 20
    assert listing(tmp_path) == ["a.sbr"]


def test_a_role_that_is_not_known_keeps_its_text(tmp_path: Path) -> None:
    """A tensor of a role that this version does not have is read with it, and it equals no other role."""
    with_role = (TensorInfo("scale", "", "float32", ()), TensorInfo(Role.PARAM, "w", "float32", ()))  # type: ignore[arg-type]
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    texts = [writer.text("")] * 3
    head = (0, KINDS.index(EventKind.STEP), 0, writer.text("SGD.step"), None, None)
    writer.add((*head, *texts, writer.layout(with_role), bytes(32), b""))
    writer.close()

    with RecordReader(tmp_path / "a.sbr") as reader:
        (event,) = reader.events()

    unknown, known = (tensor.role for tensor in event.tensors)
    assert (str(unknown), unknown in list(Role)) == ("scale", False)
    assert known is Role.PARAM
    assert event.kind is EventKind.STEP


class Launch:
    """A GPU that gives digests, fails, or may not be waited for."""

    def __init__(self, outcome: bytes | Exception, *, capturing: bool = False) -> None:
        self.outcome, self.capturing = outcome, capturing

    def read(self) -> bytes:
        """The digests."""
        assert not self.capturing
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def can_wait(self) -> bool:
        """As told."""
        return not self.capturing


def later(known: Any, launch: Launch) -> Any:
    """A row whose digests a GPU still computes."""
    return (*known[:-2], pending(launch, len(known[-2]) // 16), known[-1])


def test_digests_are_read_when_they_are_written(tmp_path: Path) -> None:
    """What a GPU had not computed when the event was added; where it fails, the event is left out."""
    error, lost = RuntimeError("CUDA error: unspecified launch failure"), []
    writer = write(tmp_path / "a.sbr", 5, close=False)
    writer.when_lost = lost.append
    known = [row(writer, seq) for seq in (5, 6)]
    computed = b"\7" * len(known[0][-2])
    for each, launch in zip(known, (Launch(computed), Launch(error)), strict=True):
        writer.add(later(each, launch))
    writer.close()
    with RecordReader(tmp_path / "a.sbr") as reader:
        digests = {event.seq: b"".join(event.digests) for event in reader.events()}
    assert list(digests) == list(range(6))
    assert digests[5] == computed
    assert lost == [error]


def test_events_wait_while_a_graph_is_captured(tmp_path: Path) -> None:
    """To wait for a GPU would end the capture; events before that are written."""
    writer = write(tmp_path / "a.sbr", 7, close=False)
    known = row(writer, 7)
    launch = Launch(bytes(len(known[-2])), capturing=True)
    writer.add(later(known, launch))
    writer.add(row(writer, 8))
    writer.flush()
    assert [held[0] for held in writer._rows] == [7, 8]
    launch.capturing = False
    writer.close()
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert [event.seq for event in reader.events()] == list(range(9))
