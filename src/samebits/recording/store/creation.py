"""Bring a record file into being, and make it a single file again."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing, suppress
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from pathlib import Path
from typing import Any

from samebits import files
from samebits.errors import SamebitsError
from samebits.masking import Masker
from samebits.recording.events import RunInfo
from samebits.recording.store import schema
from samebits.recording.store.appending import AppendedFile
from samebits.recording.store.connecting import connect
from samebits.recording.store.log import LogError, first_frame, is_written, log_of, rebuild
from samebits.recording.store.masked import masked_info
from samebits.recording.store.reader import RecordReader


def create(path: Path, info: RunInfo, *, overwrite: bool) -> AppendedFile:
    """Create an empty record and return its log, to which the run is written.

    Args:
        path: absolute.
        info: what is known of the run so far.
        overwrite: replace an existing record (never another kind of file).

    Raises:
        SamebitsError: `record-exists`, `record-busy` or `record-unwritable`.
    """
    try:
        for name in (*sidecars(path), path):  # SQLite writes the sidecars too
            there = files.refuse_irregular(name)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if overwrite and there:
        _remove_record(path)
    try:
        os.close(files.create(path))  # for its owner only
    except FileExistsError:
        raise SamebitsError(_exists(path), slug="record-exists") from None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        for name in sidecars(path):  # what an earlier record of this name may have left
            name.unlink(missing_ok=True)
        _initialize(path, info)
        log = AppendedFile(log_of(path))
        log.append(first_frame(info))
    except (sqlite3.Error, OSError) as error:
        for name in (path, *sidecars(path)):
            with suppress(OSError):
                name.unlink()
        raise _unwritable(path, error) from None
    return log


def fold(path: str | Path, **fields: Any) -> None:
    """Bring the log of a record into it: a single file is left. Nothing is done where there is no log.

    The record is made anew beside the old one and takes its place at once, so that whatever ends this process
    leaves either both files or the one.

    Args:
        path: of the record.
        fields: of `RunInfo`, to be replaced.

    Raises:
        SamebitsError: `record-damaged`, or `record-unwritable`: the record stays as it is.
    """
    place = Path(os.path.realpath(path))
    log = log_of(place)
    if not fields and not log.is_file():
        return
    new = place.with_name(f"{place.name}-{os.getpid()}")
    try:
        try:
            os.close(files.create(new, mode=stat.S_IMODE(place.stat().st_mode)))
            _make_anew(place, new, log)
            if fields:
                _describe(new, RunInfo(**fields))
            os.replace(new, place)
            log.unlink(missing_ok=True)
        except LogError as error:
            raise SamebitsError(
                f"{schema.shown(place)} is damaged ({error}): record the run again", slug="record-damaged"
            ) from None
        except (sqlite3.Error, OSError) as error:
            raise _unwritable(place, error) from None
    finally:
        with suppress(OSError):
            new.unlink()


def finalize(path: str | Path, **fields: Any) -> None:
    """Close a record whose writer died: fold its log into it and replace fields of its `RunInfo`.

    Args:
        path: of the record.
        fields: of `RunInfo`.

    Raises:
        SamebitsError: as `RecordReader` does, `record-busy` or `record-unwritable`.
    """
    _refuse_busy(Path(os.path.realpath(path)))
    with RecordReader(path) as reader:
        info = masked_info(replace(reader.info, **fields), Masker())
    fold(path, **{field.name: getattr(info, field.name) for field in dataclass_fields(info)})


def sidecars(path: Path) -> tuple[Path, ...]:
    """Return the files that may lie beside a record: its log, and what SQLite would look for."""
    return tuple(path.with_name(path.name + suffix) for suffix in ("-log", "-wal", "-shm", "-journal"))


def _make_anew(place: Path, new: Path, log: Path) -> None:
    if log.is_file():
        with closing(connect(new)) as connection:
            if rebuild(connection, log):
                return
    shutil.copyfile(place, new)


def _describe(record: Path, info: RunInfo) -> None:
    with closing(connect(record)) as connection:
        schema.write_info(connection, info)


def _initialize(path: Path, info: RunInfo) -> None:
    with closing(connect(path)) as connection:
        schema.create_tables(connection)
        schema.write_info(connection, info)


def _remove_record(path: Path) -> None:
    try:
        with files.open_to_read(path) as file:
            header = file.read(100)
    except OSError as error:
        raise _unwritable(path, error) from None
    if header and not schema.is_record(header):
        raise SamebitsError(
            f"{schema.shown(path)} is not a samebits record and was not overwritten: give another path",
            slug="record-exists",
        )
    try:
        _refuse_busy(path)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _refuse_busy(path: Path) -> None:
    """Refuse a record that a live process writes."""
    if is_written(log_of(path)):
        raise SamebitsError(
            f"{schema.shown(path)} is being written by another run: wait for its end, or give another path",
            slug="record-busy",
        )


def _exists(path: Path) -> str:
    return f"{schema.shown(path)} already exists: give another path, or allow it to be overwritten"


def _unwritable(path: Path, error: Exception) -> SamebitsError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    place = getattr(error, "filename", None) or path  # a file beside the record may be in the way
    return SamebitsError(
        f"cannot write the record {schema.shown(place)} ({reason}):"
        " give a path in a directory that exists, is writable and has free space",
        slug="record-unwritable",
    )
