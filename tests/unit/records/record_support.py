"""Records for the tests of the store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits._runtime.frames import Site
from samebits.records.events import RunInfo, TensorInfo
from samebits.records.kinds import KINDS
from samebits.records.writer import RecordWriter

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.records.writer import EventRow

INFO = RunInfo(("train.py", "--seed", "3"), "step", "running", torch="2.13.0", environment={"threads": 2})


def infos(count: int, shape: tuple[int, ...] = (3, 5)) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo("param", f"layers.{index}.weight", "float32", shape) for index in range(count))


def row(
    writer: RecordWriter, seq: int, count: int = 2, *, kind: str = "step", op: str = "SGD.step"
) -> EventRow:
    """Return an event whose digests and links can be told from those of any other."""
    site = writer.site(Site("/home/user/train.py", seq % 7 + 1, "main"))
    digests = b"".join(digest(seq, position) for position in range(count))
    empty = writer.text("")
    head = (
        seq,
        KINDS.index(kind),
        seq // 3,
        writer.text(op),
        site,
        None,
        writer.text("net.fc1"),
        empty,
        empty,
    )
    return (*head, writer.layout(infos(count)), digests, b"")


def digest(seq: int, position: int) -> bytes:
    return seq.to_bytes(8, "little") + position.to_bytes(8, "little")


def write(path: Path, events: int = 20, *, close: bool = True) -> RecordWriter:
    writer = RecordWriter(path, INFO)
    for seq in range(events):
        writer.add(row(writer, seq))
    writer.flush()
    if close:
        writer.update(status="finished", exit_status=0, steps=events // 3)
        writer.close()
    return writer


def listing(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))
