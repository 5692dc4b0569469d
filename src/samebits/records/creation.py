"""Creates and closes a record: secrets in the facts of the run are masked, and its log is folded into it."""

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

from samebits._text import files
from samebits._text.masking import Masker
from samebits.errors import SamebitsError
from samebits.records import _schema
from samebits.records._schema import connect
from samebits.records.events import RunInfo
from samebits.records.log import AppendedFile, LogError, first_frame, is_written, log_of, rebuild
from samebits.records.notes import Note
from samebits.records.reader import RecordReader


def masked_info(info: RunInfo, masker: Masker) -> RunInfo:
    """Return the facts of a run with their secrets masked.

    Args:
        info: the facts; the command may be masked already.
        masker: made for that command.
    """
    return replace(
        info,
        command=masker.command or info.command,
        failure=masker.message(info.failure),
        environment=masker.value(info.environment),
        control=masker.value(info.control),
        notes=tuple([Note.of(note.code, *map(masker.message, note.arguments)) for note in info.notes]),
        replay=masker.value(info.replay),
    )


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
            exists = files.refuse_irregular(name)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if overwrite and exists:
        _remove_record(path)
    try:
        os.close(files.create(path))  # readable by its owner only
    except FileExistsError:
        message = f"{_schema.shown(path)} already exists: give another path, or allow it to be overwritten"
        raise SamebitsError(message, slug="record-exists") from None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        for name in sidecars(path):  # an earlier record of this name may have left them
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
    """Fold the log of a record into it, so that a single file is left. Without a log, nothing is done.

    The new record is made beside the old one and replaces it in one step, so whatever ends this process
    leaves either both files or the single one.

    Args:
        path: of the record.
        fields: of `RunInfo`, to be replaced.

    Raises:
        SamebitsError: `record-damaged` or `record-unwritable`; the record then stays as it is.
    """
    record = Path(os.path.realpath(path))
    log = log_of(record)
    if not fields and not log.is_file():
        return
    new = record.with_name(f"{record.name}-{os.getpid()}")
    try:
        try:
            os.close(files.create(new, mode=stat.S_IMODE(record.stat().st_mode)))
            _rebuild(record, new, log)
            if fields:
                _describe(new, RunInfo(**fields))
            os.replace(new, record)
            log.unlink(missing_ok=True)
        except LogError as error:
            raise _schema.damaged(record, error) from None
        except (sqlite3.Error, OSError) as error:
            raise _unwritable(record, error) from None
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
    """Return the files that may lie beside a record: its log, and those that SQLite would look for."""
    return tuple(path.with_name(path.name + suffix) for suffix in ("-log", "-wal", "-shm", "-journal"))


def _rebuild(record: Path, new: Path, log: Path) -> None:
    if log.is_file():
        with closing(connect(new)) as connection:
            if rebuild(connection, log):
                return
    shutil.copyfile(record, new)


def _describe(record: Path, info: RunInfo) -> None:
    with closing(connect(record)) as connection:
        _schema.write_info(connection, info)


def _initialize(path: Path, info: RunInfo) -> None:
    with closing(connect(path)) as connection:
        _schema.create_tables(connection)
        _schema.write_info(connection, info)


def _remove_record(path: Path) -> None:
    try:
        with files.open_to_read(path) as file:
            header = file.read(100)
    except OSError as error:
        raise _unwritable(path, error) from None
    if header and not _schema.is_record(header):
        raise SamebitsError(
            f"{_schema.shown(path)} is not a samebits record and was not overwritten: give another path",
            slug="record-exists",
        )
    try:
        _refuse_busy(path)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _refuse_busy(path: Path) -> None:
    """Refuse a record that a live process is writing."""
    if is_written(log_of(path)):
        raise SamebitsError(
            f"{_schema.shown(path)} is being written by another run: wait for its end or give another path",
            slug="record-busy",
        )


def _unwritable(path: Path, error: Exception) -> SamebitsError:
    blocked = getattr(error, "filename", None) or path  # a file beside the record may be in the way
    return SamebitsError(
        f"cannot write the record {_schema.shown(blocked)} ({_schema.reason_of(error)}):"
        " give a path in a directory that exists, is writable and has free space",
        slug="record-unwritable",
    )


def drop_contents(path: Path) -> None:
    """Remove the contents of tensors from a record; their digests stay. If that fails, nothing changes.

    Args:
        path: of a closed record.
    """
    new = path.absolute().with_name(f"{path.name}-small")
    try:
        shutil.copyfile(path, new)
        shutil.copymode(path, new)
        with closing(connect(new)) as connection:
            connection.execute("DELETE FROM capture")
            connection.execute("VACUUM")
        os.replace(new, path)
    except (OSError, sqlite3.Error):
        with suppress(OSError):
            new.unlink()
