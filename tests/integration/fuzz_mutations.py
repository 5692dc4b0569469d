"""Valid records and checkpoints, and a mutator for each: bytes, and values within the structure."""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
import zlib
from typing import TYPE_CHECKING, Any

import torch

import samebits
from samebits.checkpoint import save
from samebits.checkpoint._container import _header
from samebits.recording.session import RecordingSession
from samebits.recording.settings import RecordingSettings
from samebits.records.log import FRAME, log_of

if TYPE_CHECKING:
    import random
    from pathlib import Path

EVIL = "\x1b[2J\x1b]0;title\x07\u202e\x00\x9b31m\r\x7f"
NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    255,
    2**16,
    2**31 - 1,
    2**31,
    -(2**31),
    2**40,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64,
    10**30,
)
VALUES: tuple[Any, ...] = (
    *NUMBERS, None, True, False, 0.0, 1.5, -1e308, float("inf"), float("nan"),
    "", EVIL, "a" * 70_000, EVIL * 5_000, "\ud800", "9" * 5_000, "NaN", "[" * 3_000, "{}", "[]", "[0]",
    "/etc/passwd", "/dev/zero", "/proc/self/environ", "../../x", "aten::mm.default", "[1, 1, 1]", "[99999]",
    "optimizer 1 owns 0-99999999", [], {}, [[]], [1, 2], [-1], [EVIL], {EVIL: EVIL}, [0] * 3_000,
    {"type": "set", "items": [[]]}, {"type": "tensor", "name": "x"}, {"a": {"b": [None]}},
)  # fmt: skip


def flipped(rng: random.Random, data: bytes) -> bytes:
    """Bytes changed, cut, repeated, moved, or overwritten by numbers that matter."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        at = rng.randrange(len(found)) if found else 0
        length = rng.choice((1, 2, 4, 8, 16, 100, 4096))
        kind = rng.randrange(7)
        if kind < 2:
            found[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 2:
            found[at : at + length] = bytes(length)
        elif kind == 3:
            found[at : at + length] = b"\xff" * length
        elif kind == 4:
            other = rng.randrange(len(found) or 1)
            found[at : at + length] = found[other : other + length]
        elif kind == 5:
            value = rng.choice(NUMBERS) % 2**64
            found[at : at + 8] = value.to_bytes(8, rng.choice(("little", "big")))
        elif rng.random() < 0.3:
            del found[at : at + length if rng.random() < 0.5 else len(found)]
    return bytes(found)


def changed_json(rng: random.Random, node: Any) -> Any:
    """JSON with one of its places changed."""
    places: list[tuple[Any, Any]] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        keys = (
            list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        )
        places += [(inner, key) for key in keys]
        waiting += [inner[key] for key in keys]
    if not places:
        return copy.deepcopy(rng.choice(VALUES))
    inner, key = rng.choice(places)
    kind = rng.randrange(10)
    if kind < 6:
        inner[key] = copy.deepcopy(rng.choice(VALUES))
    elif kind == 6:
        del inner[key]
    elif kind == 7:
        other, there = rng.choice(places)
        inner[key] = copy.deepcopy(other[there])
    elif kind == 8 and isinstance(inner, dict):
        inner[rng.choice((EVIL, "x", "type", "b" * 5_000))] = inner.pop(key)
    else:
        for _ in range(rng.choice((1, 20, 150))):
            inner[key] = [inner[key]]
    return node


def make_records(folder: Path) -> dict[str, Path]:
    """Two records of one small training, and one with every operation; the log of one that was killed."""
    records = {name: folder / f"{name}.sbr" for name in ("step", "other", "op", "op-other")}
    for name, path in records.items():
        with samebits.record(path, level="op" if name.startswith("op") else "step"):
            _train(seed=1 if name.endswith("other") else 0)
    records["killed"] = folder / "killed.sbr"
    _record_without_end(records["killed"])
    return records


def _record_without_end(path: Path) -> None:
    """A record and its log, as they are when their writer is killed: the events came in two pieces."""
    session = RecordingSession(RecordingSettings(str(path), level="op"), ("train.py",))
    session.start()
    for _ in range(2):
        _train(seed=0)
        session.writer.flush()
    kept = {each: each.read_bytes() for each in (path, log_of(path))}
    session.finish()
    for each, data in kept.items():
        each.write_bytes(data)


def _train(seed: int) -> None:
    torch.manual_seed(seed)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(torch.randn(2, 3)).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()


class RecordMutator:
    """Writes mutated records.

    Args:
        records: see `make_records`.
    """

    def __init__(self, records: dict[str, Path]) -> None:
        self._records = records
        self._data = {name: path.read_bytes() for name, path in records.items()}

    def write(self, rng: random.Random, path: Path) -> Path:
        """Write a mutated record; give the sound one to compare it with."""
        path.unlink(missing_ok=True)
        name = rng.choice(("step", "step", "op"))
        if rng.random() < 0.4:
            path.write_bytes(flipped(rng, self._data[name]))
        else:
            shutil.copyfile(self._records[name], path)
            for _ in range(rng.choice((1, 1, 3))):
                _change_row(rng, path)
        return self._records["op-other" if name == "op" else "other"]


class LogMutator:
    """Writes a record that was not closed, and beside it a mutated log.

    Args:
        records: see `make_records`.
    """

    def __init__(self, records: dict[str, Path]) -> None:
        self._other = records["op-other"]
        self._record = records["killed"].read_bytes()
        self._log = log_of(records["killed"]).read_bytes()

    def write(self, rng: random.Random, path: Path) -> Path:
        """Write a mutated log; give the sound record to compare with."""
        change = flipped if rng.random() < 0.5 else _changed_log
        path.write_bytes(self._record)
        log_of(path).write_bytes(change(rng, self._log))
        return self._other


def _change_row(rng: random.Random, path: Path) -> None:
    """Put something else into one value, or something that samebits never makes into the schema."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        for setting in ("journal_mode=OFF", "synchronous=OFF", "writable_schema=ON"):
            db.execute(f"PRAGMA {setting}")
        if rng.random() < 0.05:
            db.execute(rng.choice(_SCHEMAS))
            return
        table, columns = rng.choice(_TABLES)
        column = rng.choice(columns)
        rows = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
        if not rows:
            return
        at = rng.randrange(rows)
        row = db.execute(f"SELECT rowid, {column} FROM {table} LIMIT 1 OFFSET {at}").fetchone()  # noqa: S608
        values = (_other(rng, row[1]), row[0])
        db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", values)  # noqa: S608
        if table == "event":  # as an author who knows the format would
            blobs = db.execute("SELECT rowid, heads, digests, links FROM event").fetchall()
            for number, *parts in blobs:
                if all(isinstance(part, bytes) for part in parts):
                    db.execute(
                        "UPDATE event SET checksum = ? WHERE rowid = ?", (zlib.crc32(b"".join(parts)), number)
                    )
    except (sqlite3.Error, OverflowError, UnicodeError, RecursionError, MemoryError):
        pass  # what SQLite itself does not take
    finally:
        db.close()


def _other(rng: random.Random, value: Any) -> Any:
    """A value in the place of another one, often of its own kind."""
    if isinstance(value, bytes):
        return flipped(rng, value) if rng.random() < 0.8 else rng.choice((b"", b"\0" * 42, "text", 5, None))
    if isinstance(value, str) and value[:1] in ("[", "{") and rng.random() < 0.8:
        return json.dumps(changed_json(rng, json.loads(value)))
    if isinstance(value, int) and rng.random() < 0.8:
        return rng.choice((value + 1, value - 1, rng.randrange(60), rng.choice(NUMBERS)))
    found = rng.choice(VALUES)
    return json.dumps(found) if isinstance(found, (list, dict)) else found


def _changed_log(rng: random.Random, log: bytes) -> bytes:
    """A log with one piece changed, its checksum and its lengths made to fit."""
    pieces, at = [], 0
    while at < len(log):
        _, _, n_text, n_blobs = FRAME.unpack_from(log, at)
        start = at + FRAME.size
        pieces.append([log[start : start + n_text], log[start + n_text : start + n_text + n_blobs]])
        at = start + n_text + n_blobs
    piece = rng.choice(pieces)
    if rng.random() < 0.7:
        piece[0] = json.dumps(changed_json(rng, json.loads(piece[0]))).encode()
    else:
        piece[1] = flipped(rng, piece[1])
    if rng.random() < 0.2:
        pieces = rng.sample(pieces, len(pieces))
    packed = b""
    for text, blobs in pieces:
        packed += FRAME.pack(b"sblg", zlib.crc32(text + blobs), len(text), len(blobs)) + text + blobs
    return packed


_TABLES = (
    ("run", ("command", "level", "status", "exit_status", "failure", "steps", "torch", "environment")),
    ("run", ("control", "notes", "replay", "id")),
    ("text", ("value", "value", "value", "id")),
    ("site", ("file", "line", "function", "id")),
    ("tensor", ("role", "name", "dtype", "shape", "id")),
    ("layout", ("tensors", "tensors", "id")),
    ("event", ("heads", "heads", "digests", "links", "first_seq", "last_seq", "first_step", "last_step")),
)  # fmt: skip
_SCHEMAS = (
    "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "CREATE TRIGGER t AFTER INSERT ON text BEGIN DELETE FROM run; END",
    "CREATE TABLE g (a INTEGER, b GENERATED ALWAYS AS (a * 2) STORED)",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
    "CREATE INDEX i ON text (value)",
    f'CREATE TABLE "{EVIL.replace(chr(0), "")}" (a)',
    "UPDATE sqlite_master SET sql = 'CREATE VIEW text AS SELECT 1 AS id, 2 AS value' WHERE name = 'text'",
    "UPDATE sqlite_master SET sql='CREATE TABLE text (id, value AS (zeroblob(999999999)))' WHERE name='text'",
    "UPDATE sqlite_master SET rootpage = 3",
    "UPDATE sqlite_master SET rootpage = 4000000000 WHERE name = 'event'",
    "UPDATE sqlite_master SET type = 'view' WHERE name = 'run'",
    "DELETE FROM sqlite_master WHERE name = 'event'",
    "PRAGMA user_version=99",
    "PRAGMA application_id=0",
)


def make_checkpoint(folder: Path) -> Path:
    """A checkpoint with a bit of everything."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    values = {
        "sparse": torch.eye(3).to_sparse(),
        "turned": torch.ones(3, 2).t(),
        "complex": torch.ones(2, dtype=torch.complex64),
        "array": torch.ones(2, 3).numpy(),
        "plain": [
            1,
            2.5,
            float("inf"),
            b"a",
            (1,),
            {1, 2},
            1 << 70,
            1j,
            torch.Size([1]),
            torch.int8,
            {3: "x"},
        ],
        "generator": torch.Generator(),
    }
    path = folder / "checkpoint"
    save(path, step=1, model=model, optimizer=optimizer, **values)
    return path


class CheckpointMutator:
    """Makes mutated checkpoints.

    Args:
        path: of a sound one.
    """

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        start = 8 + int.from_bytes(self._data[:8], "little")
        self._header, self._rest = self._data[8:start], self._data[start:]

    def write(self, rng: random.Random, path: Path) -> Path:
        """Write a mutated checkpoint; there is nothing to compare it with."""
        path.write_bytes(self.mutated(rng))
        return path

    def mutated(self, rng: random.Random) -> bytes:
        """A mutated checkpoint; often with digests that fit."""
        kind = rng.randrange(10)
        if kind < 3:
            return flipped(rng, self._data)
        header = json.loads(self._header)
        if kind == 3:
            text = json.dumps(changed_json(rng, header)).encode()
            return len(text).to_bytes(8, "little") + text + self._rest
        metadata = header.pop("__metadata__")
        tree, digests = json.loads(metadata["tree"]), bytes.fromhex(metadata["digests"])
        if kind == 4:
            changed = changed_json(rng, header)
            header = changed if isinstance(changed, dict) else header
        else:
            for _ in range(rng.choice((1, 1, 3))):
                tree = changed_json(rng, tree)
        try:
            return _header(json.dumps(tree), header, digests) + self._rest
        except (TypeError, KeyError, IndexError, ValueError, AttributeError, RecursionError):
            return flipped(rng, self._data)  # the writer cannot make that
