"""A record may be anything: whatever it holds ends in one clear line, runs nothing and never hangs."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import struct
import time
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from record_support import INFO, listing, row, write

from samebits.errors import SamebitsError
from samebits.records import _schema
from samebits.records.kinds import KINDS
from samebits.records.reader import RecordReader
from samebits.records.writer import RecordWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from samebits.records.events import Event


def read_all(path: Path) -> int:
    """Read all there is; return the number of events."""
    with RecordReader(path) as reader:
        events = list(reader.events())
        list(reader.events(first_step=2**30))
        for event in events[:3]:
            reader.event(event.seq)
        for seq in range(3):
            reader.captures(seq)
        reader.n_steps()
    return len(events)


def refusal(path: Path) -> SamebitsError:
    """Return the error that reading a record ends in; it must come soon and be one line."""
    start = time.monotonic()
    with pytest.raises(SamebitsError) as caught:
        read_all(path)
    assert time.monotonic() - start < 30
    message = str(caught.value)
    assert message.startswith((str(path), "cannot read", repr(str(path))))
    assert "\n" not in message
    assert len(message) < len(str(path)) + 330
    return caught.value


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    """Each kind of wrong file has its own reason."""
    path = tmp_path / "a.sbr"
    assert refusal(path).slug == "record-missing"
    assert "does not exist: give the path of a record" in str(refusal(path))
    assert refusal(tmp_path).slug == "record-unreadable"
    assert "it is a folder, expected a regular file" in str(refusal(tmp_path))

    for content, problem in (
        (b"", "is empty"),
        (os.urandom(5000), "is not a samebits record"),
        (b"SQLite format 3\0", "is not a samebits record"),
        (b"SQLite format 3\0" + os.urandom(5000), "is not a samebits record"),
        (b"print('hello')\n" * 100, "is not a samebits record"),
    ):
        path.write_bytes(content)
        assert refusal(path).slug == "record-foreign"
        assert f"{problem}: give a record that `samebits run` or `samebits verify` wrote" in str(
            refusal(path)
        )


def test_a_foreign_database_is_refused(tmp_path: Path) -> None:
    """Also one with tables of the same names."""
    path = tmp_path / "a.sbr"
    db = sqlite3.connect(path)
    for statement in _schema.TABLES.values():
        db.execute(statement)
    db.execute(f"PRAGMA user_version={_schema.VERSION}")
    db.commit()
    db.close()
    assert refusal(path).slug == "record-foreign"


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    """Opening it would block for ever."""
    os.mkfifo(tmp_path / "a.sbr")
    assert refusal(tmp_path / "a.sbr").slug == "record-unreadable"


@pytest.mark.parametrize(("version", "age"), [(5, "a newer"), (1, "an older"), (2**31 - 1, "a newer")])
def test_another_version_is_refused(tmp_path: Path, version: int, age: str) -> None:
    """The message says what was found, what is read, and what to do."""
    path = tmp_path / "a.sbr"
    write(path)
    change(path, f"PRAGMA user_version={version}")
    error = refusal(path)
    assert error.slug == "record-version"
    assert str(error) == (
        f"{path}: found record version {version}, this samebits reads version {_schema.VERSION}:"
        f" read it with {age} samebits, or record the run again"
    )


def test_a_name_with_line_breaks_is_shown_on_one_line(tmp_path: Path) -> None:
    """The message stays one line."""
    path = tmp_path / "a\nb.sbr"
    path.write_bytes(b"")
    assert "\\n" in str(refusal(path))


def test_names_with_special_characters_are_read(tmp_path: Path) -> None:
    """SQLite takes the path as a URI, where these mean something."""
    for name in ("a?mode=memory.sbr", "b#c.sbr", "100%41.sbr", "sp ace.sbr", "ü\udce9.sbr"):
        write(tmp_path / name, 5)
        assert read_all(tmp_path / name) == 5


def test_a_record_cut_at_any_length_is_refused(tmp_path: Path) -> None:
    """Not one length of a shortened record reads as a whole one."""
    path, cut = tmp_path / "a.sbr", tmp_path / "cut.sbr"
    write(path, 300)
    content = path.read_bytes()
    lengths = {*range(130), *range(0, len(content), 509), *range(0, len(content), 4096), len(content) - 1}
    for length in sorted(lengths):
        cut.write_bytes(content[:length])
        expected = "record-damaged" if length >= 100 else "record-foreign"
        assert refusal(cut).slug == expected
    assert "copy it again in full" in str(refusal(cut))


def test_a_log_cut_at_any_length_gives_the_events_before(tmp_path: Path) -> None:
    """A log ends wherever its writer was killed."""
    path = tmp_path / "a.sbr"
    writer = RecordWriter(path, INFO)
    for seq in range(120):
        writer.add(row(writer, seq))
        if seq % 20 == 19:
            writer.flush()
    content = (tmp_path / "a.sbr-log").read_bytes()
    cut = tmp_path / "cut.sbr"
    shutil.copy(path, cut)
    counts = []
    for length in range(0, len(content), 307):
        (tmp_path / "cut.sbr-log").write_bytes(content[:length])
        counts.append(read_all(cut))
    writer.close()
    assert counts == sorted(counts)
    assert {0, 20, 40, 60, 80, 100} <= set(counts)


@pytest.mark.parametrize("with_log", [False, True])
def test_damage_anywhere_is_survived(tmp_path: Path, with_log: bool) -> None:  # noqa: FBT001
    """Random bytes in random places: a clear error, or events that do not contradict each other."""
    path, hurt = tmp_path / "a.sbr", tmp_path / "hurt.sbr"
    writer = write(path, 400, close=False)
    writer.capture([(0, 0, safetensors())])
    if not with_log:
        writer.close()
    names = [name for name in listing(tmp_path) if name.startswith("a.")]
    contents = {name: (tmp_path / name).read_bytes() for name in names}
    generator = random.Random(7)
    refused = 0
    for _ in range(250):
        for name, content in contents.items():
            damaged = bytearray(content)
            for _ in range(generator.choice((1, 5, 50, 500))):
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            hurt.with_name(name.replace("a", "hurt", 1)).write_bytes(damaged)
        outcome = outcome_of(hurt)
        refused += isinstance(outcome, SamebitsError)
        assert "\n" not in str(outcome)
    writer.close()
    assert refused > 100


def outcome_of(path: Path) -> list[Event] | SamebitsError:
    """Return the events, or why there are none."""
    try:
        read_all(path)
        with RecordReader(path) as reader:
            return list(reader.events())
    except SamebitsError as error:
        return error


def test_a_zeroed_page_is_noticed(tmp_path: Path) -> None:
    """Every page of a record: either it does not matter, or the record is refused."""
    path, hurt = tmp_path / "a.sbr", tmp_path / "hurt.sbr"
    write(path, 2000)
    with RecordReader(path) as reader:
        whole = list(reader.events())
    content = path.read_bytes()
    outcomes = []
    for start in range(PAGE, len(content), PAGE):
        hurt.write_bytes(content[:start] + bytes(PAGE) + content[start + PAGE :])
        outcomes.append(outcome_of(hurt))

    refused = [outcome for outcome in outcomes if isinstance(outcome, SamebitsError)]
    assert all(outcome == whole for outcome in outcomes if outcome not in refused)
    assert {error.slug for error in refused} == {"record-damaged"}
    assert len(refused) > len(outcomes) - 3


def change(path: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    """Do to a record what its format does not foresee."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA writable_schema=ON")
    for statement in statements:
        db.execute(statement, values)
    db.close()


def safetensors(
    header: bytes = b'{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', rest: bytes = b"abcd"
) -> bytes:
    return len(header).to_bytes(8, "little") + header + rest


WRONG_VALUES = [
    "run SET command = x'00'",
    "run SET command = '{}'",
    "run SET command = '[1]'",
    "run SET level = 'fast'",
    "run SET level = 5",
    "run SET status = ''",
    "run SET exit_status = 'zero'",
    "run SET steps = 1.5",
    "run SET steps = 'many'",
    "run SET failure = x'03'",
    "run SET failure = CAST(x'ff00fe' AS TEXT)",
    "run SET torch = x'01'",
    "run SET environment = '[]'",
    "run SET environment = '{'",
    f"run SET environment = '{'[' * 200_000}'",
    f"run SET environment = '{{\"a\": {'9' * 500_000}}}'",
    f"run SET environment = '{{\"a\": {'9' * 100}}}'",
    "run SET notes = 'null'",
    "text SET value = x'41' WHERE id = 1",
    "text SET value = NULL WHERE id = 1",
    "text SET value = CAST(x'c328' AS TEXT) WHERE id = 1",
    "text SET id = -5 WHERE id = 1",
    "site SET file = 9223372036854775807",
    "site SET line = 'one'",
    "site SET function = NULL",
    "tensor SET name = 12345",
    "tensor SET dtype = -1",
    "tensor SET shape = '[-1]'",
    "tensor SET shape = '[1.5]'",
    "tensor SET shape = '[true]'",
    "tensor SET shape = '[18446744073709551616]'",
    "tensor SET shape = '{}'",
    f"tensor SET shape = '{'[' * 200_000}'",
    "layout SET tensors = '[99999]'",
    "layout SET tensors = '[0]'",
    "layout SET tensors = '[0, 1, 1]'",
    "layout SET tensors = 0",
    "event SET heads = 'text'",
    "event SET heads = x''",
    "event SET heads = substr(heads, 2)",
    "event SET digests = substr(digests, 2)",
    "event SET digests = digests || x'00'",
    "event SET digests = 5",
    "event SET links = NULL",
    "event SET links = x'0000000000000000'",
    "event SET checksum = checksum + 1",
    "event SET checksum = 'sum'",
    "event SET last_seq = 10000000",
    "event SET first_seq = first_seq + 1",
    "event SET first_seq = -9223372036854775807",
    "capture SET data = substr(data, 2)",
    "capture SET data = 'text'",
    "capture SET data = 17",
    "capture SET position = 'first'",
    "capture SET checksum = NULL",
]


OTHER_ROWS = [
    "DELETE FROM run",
    "DELETE FROM text",
    "DELETE FROM text WHERE id = 1",
    "DELETE FROM site",
    "DELETE FROM tensor",
    "DELETE FROM layout",
    """
    INSERT INTO run
    SELECT 2, samebits, command, level, status, exit_status, failure, steps, torch, environment, control,
    notes, replay
    FROM run
    """,
    """
    INSERT INTO event
    SELECT first_seq + 1, last_seq, first_step, last_step, checksum, heads, digests, links FROM event
    """,
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "a.sbr"
    writer = write(path, 20, close=False)
    writer.capture([(1, 0, safetensors())])
    writer.update(status="finished")
    writer.close()
    assert read_all(path) == 20
    return path


@pytest.mark.parametrize(
    "statement",
    [f"UPDATE {change}" for change in WRONG_VALUES] + OTHER_ROWS,
    ids=lambda text: text[:60].strip(),
)
def test_a_wrong_value_is_refused(tmp_path: Path, sound: Path, statement: str) -> None:
    """Every column, with values of other types, out of range, or pointing nowhere."""
    path = tmp_path / "a.sbr"
    shutil.copy(sound, path)
    loosen(path)
    change(path, statement)
    tighten(path)
    assert refusal(path).slug == "record-damaged"


def loosen(path: Path) -> None:
    """Let the tables take any value: a forger is not held by NOT NULL."""
    change(path, "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")


def tighten(path: Path) -> None:
    """Declare the tables again as samebits does."""
    for name, text in _schema.TABLES.items():
        change(path, "UPDATE sqlite_master SET sql = ? WHERE name = ?", values=(text, name))


def test_two_events_of_one_number_are_refused(tmp_path: Path) -> None:
    """Rows may overlap, but not contradict each other."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    for pair in (((5, "SGD.step"), (6, "SGD.step")), ((4, "SGD.step"), (6, "other"))):
        for seq, op in pair:
            writer.add(row(writer, seq, op=op))
        writer.flush()
    writer.close()
    assert "event 6 comes twice" in str(refusal(tmp_path / "a.sbr"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (1, -1),
        (2, 999),
        (3, 999),
        (4, -2),
        (5, 999),
        (6, -1),
        (7, 999),
        (8, 999),
        (9, len(KINDS)),
        (10, 2),
        (0, -4),
    ],
)
def test_an_event_that_points_nowhere_is_refused(tmp_path: Path, sound: Path, field: int, value: int) -> None:
    """Also when the checksum of its row was made to match."""
    size = _schema.HEAD.size

    def point_elsewhere(heads: bytes, digests: bytes, links: bytes) -> tuple[bytes, bytes, bytes]:
        head = list(_schema.HEAD.unpack(heads[5 * size : 6 * size]))
        head[field] = value
        return heads[: 5 * size] + _schema.HEAD.pack(*head) + heads[6 * size :], digests, links

    path = tmp_path / "a.sbr"
    shutil.copy(sound, path)
    forge(path, point_elsewhere)
    assert refusal(path).slug == "record-damaged"


@pytest.mark.parametrize(
    "change",
    [
        lambda heads, digests, links: (b"", digests, links),
        lambda heads, digests, links: (b"", b"", b""),
        lambda heads, digests, links: (heads[:-1], digests, links),
        lambda heads, digests, links: (heads[: _schema.HEAD.size], digests, links),
        lambda heads, digests, links: (heads * 2, digests * 2, links * 2),
        lambda heads, digests, links: (heads, digests[:-1], links),
        lambda heads, digests, links: (heads, digests[:-16], links),
        lambda heads, digests, links: (heads, b"", links),
        lambda heads, digests, links: (heads, digests + bytes(16), links),
        lambda heads, digests, links: (heads, digests, bytes(8)),
    ],
)
def test_digests_and_links_of_the_wrong_length_are_refused(
    tmp_path: Path, sound: Path, change: Callable[[bytes, bytes, bytes], tuple[bytes, bytes, bytes]]
) -> None:
    """Each event takes what its layout says, and nothing may be left over."""
    path = tmp_path / "a.sbr"
    shutil.copy(sound, path)
    forge(path, change)
    assert refusal(path).slug == "record-damaged"


def forge(path: Path, change: Callable[[bytes, bytes, bytes], tuple[bytes, bytes, bytes]]) -> None:
    """Change stored events and make their checksum match."""
    db = sqlite3.connect(path)
    blobs = change(*db.execute("SELECT heads, digests, links FROM event").fetchone())
    values = (*blobs, _schema.checksum(*blobs))
    db.execute("UPDATE event SET heads = ?, digests = ?, links = ?, checksum = ?", values)
    db.commit()
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW stranger AS SELECT 1",
        "CREATE TRIGGER stranger AFTER INSERT ON run BEGIN DELETE FROM event; END",
        "CREATE INDEX stranger ON text (value)",
        "CREATE TABLE stranger (id INTEGER)",
        "CREATE VIRTUAL TABLE stranger USING fts5(x)",
        "DROP TABLE capture",
        "ALTER TABLE run ADD COLUMN more TEXT DEFAULT 5",
    ],
)
def test_other_tables_views_and_triggers_are_refused(tmp_path: Path, sound: Path, statement: str) -> None:
    """Nothing that SQLite would run by itself is let in, not even at first."""
    path = tmp_path / "a.sbr"
    shutil.copy(sound, path)
    change(path, statement)
    with pytest.raises(SamebitsError, match=r"it holds the unknown|its table .* is missing") as caught:
        RecordReader(path)
    assert caught.value.slug == "record-damaged"


def test_a_view_in_place_of_a_table_is_refused(tmp_path: Path, sound: Path) -> None:
    """Whatever it would compute, and however long."""
    path = tmp_path / "a.sbr"
    shutil.copy(sound, path)
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'a' AS value FROM n"
    )
    change(path, "DROP TABLE text", f"CREATE VIEW text AS {endless}")
    assert refusal(path).slug == "record-damaged"


# A leaf page's only row, as SQLite stores it: its types, then its values.
LONELY_ROWS = {
    "text": b"\x03\x00\x0fa",
    "event": b"\x09\x00\x08\x08\x08\x08\x0c\x0c\x0c",
    "capture": b"\x06\x00\x01\x08\x08\x0c\x4d",
}


@pytest.mark.parametrize("table", LONELY_ROWS)
def test_pages_that_repeat_without_end_are_refused(tmp_path: Path, table: str) -> None:
    """A forged tree whose branches all lead to one leaf would take longer than a life to walk."""
    path = tmp_path / "a.sbr"
    write(path, 3, close=False).close()
    db = sqlite3.connect(path)
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    db.close()
    content = path.read_bytes()
    last = len(content) // PAGE
    tree = [root, *range(last + 1, last + 7)]
    pages = {page: inner_page(child) for page, child in pairwise(tree)}
    pages[tree[-1]] = leaf_page(LONELY_ROWS[table])
    content = bytearray(content + bytes(6 * PAGE))
    for page, body in pages.items():
        content[(page - 1) * PAGE : page * PAGE] = body
    content[28:32] = (len(content) // PAGE).to_bytes(4, "big")
    path.write_bytes(content)

    error = refusal(path)
    assert error.slug == "record-damaged"
    assert ("comes after" if table == "text" else "without end") in str(error)


def test_values_that_share_their_pages_are_refused(tmp_path: Path) -> None:
    """Seven long values of one chain of pages: with more of them a small file would fill the memory."""
    path = tmp_path / "a.sbr"
    write(path, 3, close=False).close()
    db = sqlite3.connect(path)
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'text'").fetchone()
    db.close()
    content, n_pages = path.read_bytes(), 40
    first = len(content) // PAGE + 1
    last = first + n_pages - 1
    chain = [(page + 1 if page < last else 0).to_bytes(4, "big") for page in range(first, last + 1)]
    content = bytearray(content + b"".join(next_page + b"a" * (PAGE - 4) for next_page in chain))
    content[(root - 1) * PAGE : root * PAGE] = shared_page(first, n_pages, 7)
    content[28:32] = (len(content) // PAGE).to_bytes(4, "big")
    path.write_bytes(content)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT sum(length(value)) FROM text").fetchone()[0] > 2 * len(content)
    db.close()

    assert "longer together than the file" in str(refusal(path))


PAGE = 4096
LOCAL = (PAGE - 12) * 32 // 255 - 23
"""So many bytes of a value that goes on elsewhere are in its row, at least."""


def shared_page(first: int, n_pages: int, rows: int) -> bytes:
    """Return a leaf page whose rows, a number and a text, all go on at one chain of pages."""
    size = LOCAL + n_pages * (PAGE - 4)
    header = b"\x00" + varint(2 * (size - 5) + 13)
    local = (bytes((len(header) + 1,)) + header).ljust(LOCAL, b"a")
    cells = [varint(size) + bytes((row,)) + local + first.to_bytes(4, "big") for row in range(rows)]
    start = PAGE - sum(map(len, cells))
    pointers = b"".join(struct.pack(">H", start + row * len(cells[0])) for row in range(rows))
    head = struct.pack(">BHHHB", 13, 0, rows, start, 0)
    return (head + pointers).ljust(start, b"\0") + b"".join(cells)


def varint(number: int) -> bytes:
    """A number as SQLite packs it, in three bytes."""
    return bytes((number >> 14 | 128, number >> 7 & 127 | 128, number & 127))


def inner_page(child: int) -> bytes:
    """Return an inner page of a table whose 400 branches are all the same page."""
    cell = struct.pack(">IB", child, 1)
    start = PAGE - 400 * len(cell)
    head = struct.pack(">BHHHBI", 5, 0, 400, start, 0, child)
    pointers = b"".join(struct.pack(">H", start + index * len(cell)) for index in range(400))
    return (head + pointers).ljust(start, b"\0") + cell * 400


def leaf_page(content: bytes) -> bytes:
    """Return a leaf page with one row, number 1."""
    cell = bytes((len(content), 1)) + content
    start = PAGE - len(cell)
    return struct.pack(">BHHHBH", 13, 0, 1, start, 0, start).ljust(start, b"\0") + cell


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x05",
        b"\xff" * 8,
        safetensors(b"not json"),
        safetensors(b"[]"),
        safetensors(b'{"x": 5}'),
        safetensors(b'{"x":{"dtype":5,"shape":[4],"data_offsets":[0,4]}}'),
        safetensors(b'{"x":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}}'),
        safetensors(b'{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,5]}}'),
        safetensors(b'{"x":{"dtype":"U8","shape":[4],"data_offsets":[2,4]}}'),
        safetensors(b'{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4,9]}}'),
        safetensors(b'{"x":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}}'),
        safetensors(b'{"x":{"dtype":"U8","shape":[4]}}'),
        safetensors(b"\xff\xfe{}"),
        safetensors(b"[" * 100_000),
        safetensors(b'{"x":{"dtype":"U8","shape":[%s],"data_offsets":[0,4]}}' % (b"9" * 100_000)),
        safetensors(rest=b""),
        safetensors(rest=b"too long"),
    ],
    ids=lambda blob: repr(blob[8:60]),
)
def test_what_only_claims_to_be_safetensors_is_refused(tmp_path: Path, blob: bytes) -> None:
    """A captured tensor is checked before anything is made of it."""
    writer = write(tmp_path / "a.sbr", 3, close=False)
    writer.capture([(1, 0, blob)])
    writer.close()
    assert refusal(tmp_path / "a.sbr").slug == "record-damaged"


def test_a_forged_journal_is_ignored(tmp_path: Path) -> None:
    """SQLite would delete the file that a rollback journal names as its master."""
    path, victim = tmp_path / "a.sbr", tmp_path / "victim.txt"
    write(path, 20)
    victim.write_text("precious")
    name = str(victim).encode()
    master = struct.pack(">I", 1) + name + struct.pack(">II", len(name), sum(name)) + JOURNAL
    journal = (JOURNAL + struct.pack(">IIIII", 0, 1, 1, 512, 4096)).ljust(512, b"\0") + master
    (tmp_path / "a.sbr-journal").write_bytes(journal)
    before = listing(tmp_path)

    assert read_all(path) == 20
    assert victim.read_text() == "precious"
    assert listing(tmp_path) == before


JOURNAL = bytes.fromhex("d9d505f920a163d7")


def test_texts_run_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Names that look like SQL, format strings or pickles are only names."""
    names = ["'; DROP TABLE event; --", "%s%n{0.__class__}", "cos\nsystem\n(S'echo hi'\ntR.", '"', "\\", "?"]
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    for seq, name in enumerate(names):
        writer.add(row(writer, seq, op=name))
    writer.close()
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert [event.op for event in reader.events()] == names
        with pytest.raises(ValueError, match="tuple"):
            list(reader.events(kinds=["'; DROP TABLE event; --"]))
    assert capfd.readouterr() == ("", "")


def test_the_checksum_is_the_documented_one() -> None:
    """docs/reference/record-format.md says CRC-32 of the three blobs on end."""
    assert _schema.checksum(b"ab", b"", b"c") == zlib.crc32(b"abc")
