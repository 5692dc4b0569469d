"""The record file: the only room that knows its format (docs/record-format.md)."""

from __future__ import annotations

from samebits.recording.store.creation import finalize, fold
from samebits.recording.store.reader import RecordReader
from samebits.recording.store.writer import EventRow, RecordWriter

__all__ = ["EventRow", "RecordReader", "RecordWriter", "finalize", "fold"]
