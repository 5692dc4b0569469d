"""Texts, JSON and rows of a record have limits, whoever wrote it."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from typing import TYPE_CHECKING

import pytest
from record_support import INFO, row, write
from sentence_support import notes_of, text_note

from samebits.errors import SamebitsError
from samebits.records import _schema
from samebits.records.events import Ownership
from samebits.records.log import frame, frames, log_of
from samebits.records.reader import RecordReader, Snapshot
from samebits.records.writer import RecordWriter
from samebits.report import json as json_report
from samebits.report import record as record_report
from samebits.report import text as text_report
from samebits.report.style import Style
from samebits.verification import verify_records

if TYPE_CHECKING:
    from pathlib import Path


def change(path: Path, statement: str, *values: object) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(statement, values)
    db.close()


def damaged(path: Path) -> str:
    with pytest.raises(SamebitsError) as caught, RecordReader(path) as reader:
        list(reader.events())
    assert caught.value.slug == "record-damaged"
    return str(caught.value)


def test_long_texts_are_cut_and_stay_different() -> None:
    first, second = "a" * 100_000 + "b", "a" * 100_000 + "c"
    assert _schema.cut("a" * _schema.LONGEST_TEXT) == "a" * _schema.LONGEST_TEXT
    assert len(_schema.cut(first)) == _schema.LONGEST_TEXT
    assert _schema.cut(first) != _schema.cut(second)
    assert "(100001 characters, " in _schema.cut(first)
    assert _schema.cut(_schema.cut(first)) == _schema.cut(first)


def test_megabytes_of_text_cost_little(tmp_path: Path) -> None:
    """Twelve seconds and twenty megabytes of JSON, for a record of a few megabytes."""
    for name in ("a.sbr", "b.sbr"):
        write(tmp_path / name, 40)
        change(tmp_path / name, "UPDATE text SET value = value || ?", "\x1b[2J" * 1_000_000)
        change(tmp_path / name, "UPDATE run SET failure = ?", "\u202e" * 3_000_000)
    change(tmp_path / "b.sbr", "UPDATE run SET notes = ?", json.dumps(["note " * 500_000]))

    begun = time.process_time()
    with RecordReader(tmp_path / "a.sbr") as reader:
        summary = record_report.summarize("a.sbr", 1, reader.info, reader.events())
        shown = record_report.render_text(summary, Style()) + record_report.render_json(summary)
        shown += "".join(record_report.render_events(reader.events(), Style()))
    result = verify_records(str(tmp_path / "a.sbr"), str(tmp_path / "b.sbr"))
    shown += text_report.render(result, Style(), str(tmp_path)) + json_report.render(result.comparison)
    assert len(shown) < 1_500_000
    assert time.process_time() - begun < 60  # it does end


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("environment", json.dumps({"a": "x" * 5_000_000})),
        ("notes", json.dumps(["x"] * 1_000_000)),
        ("control", "[" * 100 + "]" * 100),
        ("control", '{"a":' * 60 + "1" + "}" * 60),
        ("replay", '{"a": NaN}'),
        ("environment", '{"a": Infinity}'),
    ],
)
def test_json_has_limits(tmp_path: Path, column: str, value: str) -> None:
    write(tmp_path / "a.sbr", 5)
    change(tmp_path / "a.sbr", f"UPDATE run SET {column} = ?", value)  # noqa: S608 - our own names
    damaged(tmp_path / "a.sbr")


def test_a_shape_has_a_limit(tmp_path: Path) -> None:
    write(tmp_path / "a.sbr", 5)
    change(tmp_path / "a.sbr", "UPDATE tensor SET shape = ?", json.dumps([1] * 100_000))
    assert "100000 dimensions" in damaged(tmp_path / "a.sbr")


def test_what_is_written_is_cut_too(tmp_path: Path) -> None:
    """The last line of an exception may hold a whole tensor."""
    writer = RecordWriter(tmp_path / "a.sbr", INFO)
    writer.add(row(writer, 0))
    writer.update(
        failure="ValueError: " + "7" * 1_000_000,
        notes=(text_note("n" * 1_000_000),),
        environment={"a": "e" * 500_000},
    )
    writer.close()
    assert (tmp_path / "a.sbr").stat().st_size < 600_000
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert reader.info.failure.startswith("ValueError: 777")
        assert len(notes_of(reader.info)[0]) == _schema.LONGEST_TEXT


@pytest.mark.parametrize("value", [2**63, -(2**70), "\ud800", [1], {"a": 1}, float("inf")])
def test_values_that_sqlite_cannot_hold(tmp_path: Path, value: object) -> None:
    """The log of a run that was killed is brought into tables."""
    path = tmp_path / "a.sbr"
    writer = write(path, 5, close=False)
    log = log_of(path)
    assert len(list(frames(log))) > 1
    with log.open("ab") as file:
        file.write(frame({"text": [(77_777, value)]}))
    with pytest.raises(SamebitsError) as caught:
        RecordReader(path)
    assert caught.value.slug in ("record-damaged", "record-unreadable")
    writer.close()


def test_the_schema_cannot_run_anything(tmp_path: Path) -> None:
    """A view in the place of a table is not evaluated."""
    path = tmp_path / "a.sbr"
    write(path, 5)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA writable_schema=ON")
    endless = (
        "CREATE VIEW text AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
    )
    db.execute(
        "UPDATE sqlite_master SET type = 'view', rootpage = 0, sql = ? WHERE name = 'text'", (endless,)
    )
    db.close()
    damaged(path)


def test_ranges_of_tensors_that_are_repeated_say_nothing() -> None:
    """Each stands for a million numbers."""
    assert Ownership.from_text("optimizer 1 owns 0-2 5") == Ownership(1, (0, 1, 2, 5))
    assert Ownership.from_text("optimizer 1 owns " + "0-99999999 " * 1_000) == Ownership()
    assert Ownership.from_text("optimizer 1 owns 3 3") == Ownership()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="sqlite3 sets no limits")
def test_no_value_is_longer_than_its_file(tmp_path: Path) -> None:
    """A statement can make longer ones of what a forged page says; so can SQLite itself."""
    write(tmp_path / "a.sbr", 4)
    with Snapshot(tmp_path / "a.sbr").connect() as connection, pytest.raises(sqlite3.DataError):
        connection.execute("SELECT length(zeroblob(200000000))").fetchall()
